/**
 * The lifecycle of a site with a real ZooKeeper, the built programs and the Python requestor. Afterwards no request is
 * lost, no node was allocated twice, and no resource is left. The normal tests run short versions; `pnpm scenario` runs
 * the long ones (`NODEPOOL_SCENARIO=long`).
 */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Program, type RequestorResult, type RunningRequestor } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { Site, type LauncherSetup, type SiteOptions } from './site.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
/** Number of requests and of repetitions in a scenario. */
const SIZE = LONG ? { requests: 500, parallel: 60, rounds: 10 } : { requests: 40, parallel: 20, rounds: 2 };
const TIMEOUT_MS = LONG ? 1_800_000 : 900_000;
const DEADLINE_MS = 240_000;
/** Longer than the launcher's session timeout, which is 4 s here (ms). */
const TOO_LONG_MS = 7000;

let site: Site;
let endpoint: string;
/** Three pools of two providers that share a cloud. */
let setup: LauncherSetup;
let requestors: RunningRequestor[];

/** Starts a site for each test. */
function useSite(options: SiteOptions): void {
  beforeEach(async () => {
    site = await Site.start(options);
    endpoint = await site.cloud(['boot-time=1']);
    setup = {
      providers: [
        { name: 'alpha', endpoint, pools: ['main', 'spare'], maxServers: LONG ? 40 : 12 },
        { name: 'beta', endpoint, maxServers: LONG ? 40 : 12 },
      ],
    };
    requestors = [];
  }, DEADLINE_MS);

  afterEach(async () => {
    await site.stop();
  }, DEADLINE_MS);
}

/** Submits concurrent requests of 1 to 5 nodes each. */
async function load(requests: number): Promise<void> {
  for (let size = 1; size <= 5; size += 1) {
    const labels = Array.from({ length: size }, (_, index) => (index % 2 === 0 ? 'debian' : 'fedora')).join(',');
    const share = ['--requests', String(requests / 5), '--parallel', String(SIZE.parallel / 5)];
    const timeout = ['--timeout', String(TIMEOUT_MS / 1000)];
    requestors.push(await site.requestor('--labels', labels, ...share, ...timeout, '--wait-deleted'));
  }
}

/** Resolves with true once nodes are being built, or with false if all requests are already fulfilled. */
async function busy(launcher: Program): Promise<boolean> {
  const served = Promise.all(requestors.map(({ result }) => result)).then(() => false);
  return Promise.race([served, site.nodesExist(launcher, 3).then(() => true)]);
}

async function expectAllServed(requests: number): Promise<void> {
  const results: RequestorResult[] = await Promise.all(requestors.map(({ result }) => result));
  expect(results.map(({ summary }) => ({ outcomes: summary?.outcomes, problems: summary?.problems }))).toEqual(
    results.map(() => ({ outcomes: { fulfilled: requests / 5 }, problems: [] })),
  );
  const nodes = results.flatMap(({ reports }) => reports.flatMap((report) => report.nodes));
  expect(nodes).toHaveLength((requests / 5) * (1 + 2 + 3 + 4 + 5));
  expect(new Set(nodes).size).toBe(nodes.length);
}

/** Asserts that no record, lock or instance is left. */
async function expectNothingLeft(launcher: Program): Promise<void> {
  await site.clean(launcher);
  await site.nothingLeft(launcher);
  await site.noInstances(launcher, endpoint);
}

describe('a site with its own ZooKeeper', () => {
  useSite({ maxSessionTimeout: 60_000 });

  it(
    'survives restarts of the server under load',
    async () => {
      const launcher = await site.launcher(setup);
      await load(10);
      await site.nodesExist(launcher, 10);
      for (let round = 0; round < SIZE.rounds; round += 1) await site.restartZooKeeper();
      await expectAllServed(10);
      await expectNothingLeft(launcher);
    },
    TIMEOUT_MS,
  );
});

describe('a site', () => {
  useSite({});

  it(
    `with two launchers and three pools serves ${SIZE.requests} requests of 1 to 5 nodes`,
    async () => {
      const first = await site.launcher(setup);
      await site.launcher(setup);
      await load(SIZE.requests);
      await expectAllServed(SIZE.requests);
      await expectNothingLeft(first);
    },
    TIMEOUT_MS,
  );

  it(
    'survives a launcher that is suspended for longer than its session, and continues',
    async () => {
      const sleeper = await site.launcher(setup);
      const other = await site.launcher(setup);
      await load(SIZE.requests);
      for (let round = 0; round < SIZE.rounds && (await busy(other)); round += 1) {
        sleeper.signal('SIGSTOP');
        await sleep(systemClock, TOO_LONG_MS);
        sleeper.signal('SIGCONT');
      }
      await expectAllServed(SIZE.requests);
      await expectNothingLeft(sleeper);
    },
    TIMEOUT_MS,
  );

  it(
    'survives launchers that are killed in the middle of launches',
    async () => {
      const launcher = await site.launcher(setup);
      await load(SIZE.requests);
      for (let round = 0; round < SIZE.rounds; round += 1) {
        const victim = await site.launcher(setup);
        await busy(launcher);
        await victim.kill();
      }
      await expectAllServed(SIZE.requests);
      await expectNothingLeft(launcher);
    },
    TIMEOUT_MS,
  );

  it(
    'serves requests while its configuration changes, also to invalid ones',
    async () => {
      const launcher = await site.launcher(setup);
      const [alpha, beta] = setup.providers ?? [];
      if (alpha === undefined || beta === undefined) throw new Error('the site has two providers');
      await load(SIZE.requests);
      for (let round = 0; round < SIZE.rounds && (await busy(launcher)); round += 1) {
        await site.reconfigure(launcher, { config: 'labels: [\n  - name: debian' });
        await sleep(systemClock, 1000);
        await site.reconfigure(launcher, { providers: [alpha] });
        await sleep(systemClock, 2000);
        await site.reconfigure(launcher, { providers: [{ ...alpha, maxServers: 6 }, beta] });
        await sleep(systemClock, 2000);
        await site.reconfigure(launcher, setup);
        await sleep(systemClock, 1000);
      }
      await expectAllServed(SIZE.requests);
      await expectNothingLeft(launcher);
      expect(launcher.exit).toBeUndefined();
    },
    TIMEOUT_MS,
  );
});
