/** Bridges for GitHub Actions during long outages, on a virtual clock: each job is served once, and nothing is left. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { CallFault } from '@nodepool/simulated-github';
import type { BridgeProcess } from '../src/github/bridge-process.js';
import { BRIDGE_SITE, BridgeWorld } from '../src/github/bridge-world.js';
import { unfinishedOfBridges } from '../src/github/rules.js';

const MINUTE_MS = 60_000;
const OPERATIONS = ['apps', 'runners', 'runnerscalesets', 'sessions', 'messages', 'agents'];

let bridges: BridgeWorld;
let bridge: BridgeProcess;

beforeEach(async () => {
  bridges = await BridgeWorld.start({ seed: 1 });
  bridges.world.startLauncher('launcher-1', BRIDGE_SITE);
  bridge = bridges.startBridge();
});
afterEach(() => bridges.end());

const states = (): readonly string[] => bridges.github.inspect.jobs().map(({ state }) => state);

async function until(what: string, condition: () => boolean, limitMs = 5 * MINUTE_MS): Promise<void> {
  const reached = await bridges.world.until(condition, limitMs);
  expect({ what, reached, violation: bridges.world.checker.violation }).toEqual({ what, reached: true });
}

/** Expects that every job has succeeded on a runner of its own within the time, and that nothing is left. */
async function served(limitMs: number): Promise<void> {
  await until('all jobs end', () => states().every((state) => state === 'completed'), limitMs);
  await until('nothing is left', () => unfinishedOfBridges(bridges).next().done === true);
  const jobs = bridges.github.inspect.jobs();
  expect(jobs.map(({ result, startedBy }) => [result, startedBy.length])).toEqual(jobs.map(() => ['succeeded', 1]));
}

/** Queues jobs, and resolves once the first ones run; the last ones wait for their runners. */
async function atWork(): Promise<void> {
  for (let count = 0; count < 4; count += 1) bridges.queueJob({ durationMs: 2 * MINUTE_MS });
  await until('jobs run', () => states().filter((state) => state === 'running').length === 4);
  for (let count = 0; count < 2; count += 1) bridges.queueJob();
}

describe('away for ten minutes', () => {
  it('GitHub: jobs in progress end, and waiting and later ones are served', async () => {
    await atWork();
    bridges.github.goAway(10 * MINUTE_MS);
    await bridges.world.clock.advance(5 * MINUTE_MS);
    expect(bridges.world.checker.violation).toBeUndefined();
    bridges.queueJob();
    await bridges.world.clock.advance(5 * MINUTE_MS);
    await served(5 * MINUTE_MS);
  });

  it('ZooKeeper: jobs in progress end, and waiting and later ones are served', async () => {
    await atWork();
    bridges.world.server.stop();
    await bridges.world.clock.advance(5 * MINUTE_MS);
    bridges.queueJob();
    await bridges.world.clock.advance(5 * MINUTE_MS);
    expect(states().filter((state) => state === 'completed').length).toBeGreaterThanOrEqual(4);
    bridges.world.server.start();
    await served(10 * MINUTE_MS);
  });

  it('both, while the bridge is killed: another one continues', async () => {
    await atWork();
    bridges.github.goAway(10 * MINUTE_MS);
    bridges.world.server.stop();
    bridge.kill();
    await bridges.world.clock.advance(10 * MINUTE_MS);
    bridges.world.server.start();
    bridges.startBridge();
    await served(10 * MINUTE_MS);
  });
});

describe('tokens', () => {
  it('expire again and again while jobs are served for an hour', async () => {
    const tokens = { installationTokenMs: 90_000, registrationTokenMs: 90_000, adminTokenMs: 90_000 };
    bridges.github.configure({ ...tokens, queueTokenMs: 70_000 });
    for (let minute = 0; minute < 60; minute += 4) {
      bridges.queueJob({ durationMs: MINUTE_MS });
      await bridges.world.clock.advance(4 * MINUTE_MS);
    }
    await served(MINUTE_MS);
  });

  it('are refused during an outage of the login, and renewed after it', async () => {
    await atWork();
    bridges.github.revokeTokens('installation');
    bridges.github.revokeTokens('admin');
    bridges.github.revokeTokens('queue');
    bridges.github.faults.add({ on: 'apps', times: Infinity, fault: { kind: 'status', status: 401 } });
    await bridges.world.clock.advance(5 * MINUTE_MS);
    bridges.github.faults.clear();
    await served(5 * MINUTE_MS);
  });
});

describe('the clock of GitHub', () => {
  it.each([-5, 5])('is off by %d minutes from the start', async (minutes) => {
    bridges.github.configure({ clockAheadMs: minutes * MINUTE_MS });
    await atWork();
    await served(5 * MINUTE_MS);
  });

  it.each([-5, 5])('jumps by %d minutes while jobs run, and tokens expire afterwards', async (minutes) => {
    bridges.github.configure({ adminTokenMs: 3 * MINUTE_MS, queueTokenMs: 3 * MINUTE_MS });
    await atWork();
    bridges.github.configure({ clockAheadMs: minutes * MINUTE_MS });
    await bridges.world.clock.advance(10 * MINUTE_MS);
    bridges.queueJob();
    await served(5 * MINUTE_MS);
  });

  it.each([-5, 5])('of this host jumps by %d minutes', async (minutes) => {
    await atWork();
    bridges.world.clock.jumpWallClock(minutes * MINUTE_MS);
    bridges.github.revokeTokens('admin');
    bridges.queueJob();
    await served(5 * MINUTE_MS);
  });
});

describe('every kind of call fails for five minutes', () => {
  const elsewhere = (url: URL): string => `http://github.example.org${url.pathname}`;
  const slash = (url: URL): string => `${url.origin}${url.pathname}${url.search}`;
  it.each<[string, CallFault]>([
    ['409', { kind: 'status', status: 409 }],
    ['429', { kind: 'status', status: 429 }],
    ['429 with a time', { kind: 'status', status: 429, retryAfter: 20 }],
    ['500', { kind: 'status', status: 500 }],
    ['503', { kind: 'status', status: 503 }],
    ['a redirect to another host', { kind: 'redirect', status: 302, to: elsewhere }],
    ['a redirect in a circle', { kind: 'redirect', status: 307, to: slash }],
    ['the page of a proxy', { kind: 'proxy', status: 200 }],
    ['a lost answer', { kind: 'cut', when: 'after' }],
    ['no answer', { kind: 'hang', when: 'after' }],
  ])('%s', async (_what, fault) => {
    await atWork();
    for (const on of OPERATIONS) bridges.github.faults.add({ on, times: Infinity, fault });
    await bridges.world.clock.advance(5 * MINUTE_MS);
    bridges.queueJob();
    expect(bridges.world.checker.violation).toBeUndefined();
    bridges.github.faults.clear();
    await served(10 * MINUTE_MS);
  });

  it('a redirect within the host is followed', async () => {
    const moved = (url: URL): string => `${url.origin}${url.pathname}${url.search}`;
    for (const on of OPERATIONS) bridges.github.faults.add({ on, times: 3, fault: { kind: 'redirect', status: 307, to: moved } }); // prettier-ignore
    await atWork();
    await served(5 * MINUTE_MS);
  });
});

it('a runner whose job runs is not ended, although no message has told the start of the job', async () => {
  const { github, machines } = bridges;
  github.messageFaults.add({ on: 'JobStarted', times: Infinity, fault: { kind: 'lost' } });
  const long = [bridges.queueJob({ durationMs: 10 * MINUTE_MS }), bridges.queueJob({ durationMs: 10 * MINUTE_MS })];
  await until('two jobs run', () => states().filter((state) => state === 'running').length === 2);
  // A third runner gets no job, and is one too many once its job is cancelled.
  const fault = { kind: 'runner', behaviour: 'hangs-online' } as const;
  github.faults.add({ on: 'runnerscalesets.generateJitConfig', times: 1, fault });
  const third = bridges.queueJob();
  await until('three runners', () => github.inspect.runners().filter(({ isOnline }) => isOnline).length === 3);
  bridges.cancelJob(third);
  await until('one runner is ended', () => github.inspect.runners().length === 2);
  await until('all jobs end', () => states().every((state) => state === 'completed'), 15 * MINUTE_MS);
  const results = github.inspect.jobs().filter(({ number }) => long.includes(number)).map(({ result }) => result); // prettier-ignore
  expect([results, machines.killed.size]).toEqual([['succeeded', 'succeeded'], 0]);
});

it('no call is sent before the time that GitHub asks for', async () => {
  await atWork();
  const { calls, faults } = bridges.github;
  const refusal = faults.add({ on: 'messages', fault: { kind: 'status', status: 429, retryAfter: 50 } });
  await until('the refusal', () => refusal.hits === 1);
  // Calls in progress end.
  await bridges.world.clock.advance(1000);
  const before = calls.count();
  await bridges.world.clock.advance(45_000);
  expect(calls.count()).toBe(before);
  await served(5 * MINUTE_MS);
});

it('no call with a token is sent to another host after a redirect', async () => {
  const hosts = new Set<string>();
  const { fetch } = bridges.github;
  Object.assign(bridges.github, {
    fetch: (input: string | URL | Request, init?: RequestInit) => {
      hosts.add(new URL(input instanceof Request ? input.url : input).hostname);
      return fetch(input, init);
    },
  });
  for (const on of OPERATIONS) {
    bridges.github.faults.add({ on, fault: { kind: 'redirect', status: 302, to: 'http://attacker.example.org/' } });
  }
  await atWork();
  await served(5 * MINUTE_MS);
  expect([...hosts]).toEqual(['127.0.0.1']);
});
