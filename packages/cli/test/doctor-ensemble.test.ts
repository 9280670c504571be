/** `nodepool doctor` on a real ensemble that loses its servers. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import type { Finding } from '../src/doctor/finding.js';
import { run } from '../src/index.js';
import { CapturedOutput } from './console.js';

/** Limit for a server to notice that it has no quorum (ms), longer than on any slow machine. */
const LONG_MS = 240_000;

let ensemble: RunningZooKeeper;
let folder: string;

beforeAll(async () => {
  ensemble = await startZooKeeper({ ensembleSize: 3 });
  folder = mkdtempSync(join(tmpdir(), 'nodepool-doctor-'));
  const servers = ensemble.servers.split(',').map((server) => `{host: 127.0.0.1, port: ${server.split(':')[1]!}}`);
  writeFileSync(
    join(folder, 'nodepool.yaml'),
    `zookeeper-servers: [${servers.join(', ')}]\nlabels: []\nproviders: []\n`,
  );
});

afterAll(async () => {
  await ensemble.stop();
  rmSync(folder, { recursive: true });
});

/** Returns the exit code, and the findings about ZooKeeper's servers with their indexes. */
async function examined({
  connectSeconds,
}: {
  readonly connectSeconds: number;
}): Promise<readonly [number, readonly string[]]> {
  const out = new CapturedOutput();
  const code = await run(
    ['-c', join(folder, 'nodepool.yaml'), '--connect-timeout', String(connectSeconds), 'doctor', '-o', 'json'],
    {
      ...{ out, env: {}, interrupted: new AbortController().signal },
    },
  );
  const findings = JSON.parse(out.printed) as readonly Finding[];
  const servers = ensemble.servers.split(',');
  const texts = findings
    .filter(({ check, object }) => check === 'zookeeper' && object !== '/nodepool')
    .map(({ severity, object, reason }) =>
      servers.reduce((text, server, index) => text.replaceAll(server, `#${index}`), `${severity} ${object}: ${reason}`),
    );
  return [code, texts.map((text) => text.replace(/, version.*| ms, .*|, \d+ reads.*/, '')).sort()];
}

it('reports a lost server with its effect, and an ensemble without quorum as an error', async () => {
  const leader = (await ensemble.leader())!;
  const [lost, other] = [0, 1, 2].filter((index) => index !== leader) as [number, number];
  await ensemble.kill('SIGKILL', lost);

  const [code, found] = await examined({ connectSeconds: 240 });
  expect(code).toBe(0);
  expect(found).toHaveLength(4);
  expect(found).toContain('info ensemble: 2 of 3 servers serve: Nodepool pauses if another one fails');
  expect(found).toContain(`warning #${lost}: connect ECONNREFUSED #${lost}`);
  // On a slow machine, these can be warnings about the latency.
  expect(found).toContainEqual(expect.stringContaining(` #${leader}: leader`));
  expect(found).toContainEqual(expect.stringContaining(` #${other}: follower`));

  await ensemble.kill('SIGKILL', leader);
  const deadline = performance.now() + LONG_MS;
  while (!(await ensemble.fourLetterWord('srvr', other)).includes('not currently serving')) {
    expect(performance.now()).toBeLessThan(deadline);
  }
  expect(await examined({ connectSeconds: 2 })).toEqual([
    1,
    [
      expect.stringMatching(/^error #\d: has no quorum$/),
      expect.stringMatching(/^error connection: ZooKeeper \(#0, #1, #2\) did not answer within 2 s: /),
      expect.stringMatching(/^warning #\d: connect ECONNREFUSED #\d$/),
      expect.stringMatching(/^warning #\d: connect ECONNREFUSED #\d$/),
    ],
  ]);
});
