/** Jobs of GitHub Actions on nodes with OpenSSH, while bridges, launchers and ZooKeeper are killed. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { GithubSite, REPOSITORIES } from './github-site.js';

const DEADLINE_MS = 300_000;
const LONG_DEADLINE_MS = 3_600_000;
const JOB = { repository: 'acme/app', labels: ['linux'] } as const;

const isLong = process.env['NODEPOOL_SCENARIO'] === 'long';
/** Number of jobs of the long scenario. */
const JOBS = Number(process.env['NODEPOOL_JOBS'] ?? 1000);

let running: GithubSite;

afterEach(async () => {
  await running.stop();
});

function expectServedOnce(): void {
  const jobs = running.github.inspect.jobs();
  const served = jobs.filter(({ result, startedBy }) => result === 'succeeded' && startedBy.length === 1);
  expect(jobs.filter((job) => !served.includes(job))).toEqual([]);
  expect(new Set(jobs.flatMap(({ startedBy }) => startedBy)).size).toBe(jobs.length);
}

it('jobs run on nodes of their own, also if the bridge is killed while another one stands by', async () => {
  running = await GithubSite.start(2, 6);
  const { github, site } = running;
  const first = await running.bridge(6);
  await running.until(
    first,
    'opens a session',
    DEADLINE_MS,
    () => github.inspect.scaleSets()[0]?.session !== undefined,
  );
  const second = await running.bridge(6);
  for (let count = 0; count < 6; count++) github.queueJob({ ...JOB, durationMs: 1500, run: 'test -n "$GITHUB_JOB"' });
  await running.until(first, 'runs two jobs', DEADLINE_MS, () => running.count('running', 'completed') >= 2);
  await first.kill();
  for (let count = 0; count < 2; count++) github.queueJob(JOB);
  await running.until(second, 'serves all jobs', DEADLINE_MS, () => running.count('completed') === 8);
  await running.until(second, 'leaves no runner', DEADLINE_MS, () => github.inspect.runners().length === 0);
  expectServedOnce();
  await site.nothingLeft(running.launcher);
  await second.stop();
});

(isLong ? describe : describe.skip)('many jobs of five repositories', () => {
  it('are served once while bridge, launcher and ZooKeeper are killed', async () => {
    running = await GithubSite.start(10, 30);
    const { github, site } = running;
    let bridge = await running.bridge(30);
    for (let count = 0; count < JOBS; count++) {
      github.queueJob({ ...JOB, repository: REPOSITORIES[count % REPOSITORIES.length] ?? '', durationMs: 200 });
    }
    for (const [share, kill] of [
      [0.1, 'bridge'],
      [0.25, 'launcher'],
      [0.4, 'zookeeper'],
      [0.55, 'bridge'],
      [0.7, 'launcher'],
      [0.85, 'bridge'],
    ] as const) {
      const at = Math.floor(share * JOBS);
      await running.until(bridge, `serves ${at} jobs`, LONG_DEADLINE_MS, () => running.count('completed') >= at);
      if (kill === 'launcher') await running.replaceLauncher();
      else if (kill === 'zookeeper') await site.restartZooKeeper();
      else {
        await bridge.kill();
        bridge = await running.bridge(30);
      }
    }
    await running.until(bridge, 'serves all jobs', LONG_DEADLINE_MS, () => running.count('completed') === JOBS);
    await running.until(bridge, 'leaves no runner', DEADLINE_MS, () => github.inspect.runners().length === 0);
    expectServedOnce();
    await site.nothingLeft(running.launcher);
  });
});
