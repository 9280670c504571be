/** HTTP between the driver and Azure: lost creations, and replaced authorities. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { JsonObject } from '@nodepool/core';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const CREATE = 'virtualMachines.put';
const VMS = 'Microsoft.Compute/virtualMachines';

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = new TestProvider(open);
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

describe('a creation whose outcome is unknown', () => {
  it.each([
    ['has failed before its effect', { kind: 'status', status: 503, code: 'ServiceUnavailable' }],
    ['was lost', { kind: 'cut', when: 'before' }],
    ['took effect', { kind: 'cut', when: 'after' }],
  ] as const)('is repeated and creates one VM if it %s', async (_what, fault) => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, fault });
    const before = open.time.clock.monotonic();
    await test.launch();
    expect(open.time.clock.monotonic() - before).toBeLessThan(30_000);
    expect(open.cloud.calls.count(CREATE)).toBe(2);
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('is searched for if the repetition fails, too', async () => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, times: 2, fault: { kind: 'cut', when: 'before' } });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(open.cloud.list(VMS)).toEqual([]);
  });

  it('ends if neither it nor the repetition is answered', async () => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, times: Infinity, fault: { kind: 'hang', when: 'before' } });
    expect(['timeout', 'transient']).toContain((await test.failedLaunch()).code);
    expect(open.cloud.list(VMS)).toEqual([]);
  });
});

it('an authority that was replaced is read again when the certificate is not trusted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'azure-ca-'));
  const [authFile, caFile] = [join(folder, 'auth.json'), join(folder, 'ca.pem')];
  const auth = JSON.parse(readFileSync(open.cloud.authFile, 'utf8')) as JsonObject & { readonly caFile: string };
  writeFileSync(caFile, rootCertificates[0] ?? '');
  writeFileSync(authFile, JSON.stringify({ ...auth, caFile }));
  test = new TestProvider(open, section({ 'auth-path': authFile }));
  await expect(test.start()).rejects.toThrow(/no answer of localhost:\d+: unable to verify the first certificate/);
  copyFileSync(auth.caFile, caFile);
  await test.start();
  await test.launch();
  rmSync(folder, { recursive: true });
});
