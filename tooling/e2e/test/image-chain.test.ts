/** An image from its build to its use and deletion, as in `pnpm demo:image`, in a simulated OpenStack. */

import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Program } from '@nodepool/harness';

const DEMO = join(dirname(require.resolve('@nodepool/demo-image/package.json')), 'dist', 'main.js');
const LOG = join(__dirname, '..', 'logs', 'image-chain', 'demo.log');
const DEADLINE_MS = 600_000;

it('an image is built, uploaded, used, replaced and rolled back, and leaves no resources', async () => {
  rmSync(LOG, { force: true });
  const args = [DEMO, '--simulated', '--stand-in'];
  const demo = await Program.start({ name: 'demo', command: process.execPath, args, logFile: LOG });
  const exit = await demo.ends(DEADLINE_MS);
  const said = demo.logTail(200);
  expect([exit.code, said]).toEqual([0, expect.stringContaining('both images have completed their life cycle')]);
  const uploads = [...said.matchAll(/created from (\S+)/g)].map(([, upload]) => upload);
  expect(uploads).toHaveLength(3);
  // The third node uses the first upload again.
  expect(uploads[2]).toBe(uploads[0]);
  expect(uploads[1]).not.toBe(uploads[0]);
  expect(said).toContain('nothing is left, neither on the disk nor in the cloud');
});
