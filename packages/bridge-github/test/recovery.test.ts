/** Bridges that are killed, stopped or replaced, and services that are away. Every job is served once. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World, type RunningBridge } from './support/world.js';

const JOB = { repository: 'acme/app', labels: ['linux'] } as const;

let world: World;

beforeEach(async () => {
  world = await World.start();
});
afterEach(async () => {
  await world.stop();
});

function expectServedOnce(): void {
  const jobs = world.github.inspect.jobs();
  expect(jobs.map(({ result, startedBy }) => [result, startedBy.length])).toEqual(jobs.map(() => ['succeeded', 1]));
  expect([...world.launcher.deleted].sort()).toEqual([...world.launcher.launched].sort());
}

function isRunning(): boolean {
  return world.github.inspect.jobs().every(({ state }) => state === 'running');
}

/** The record of the only node. */
function node(): Record<string, unknown> | undefined {
  return [...world.records('nodes').values()][0];
}

async function killAt(what: string, isReached: () => boolean): Promise<void> {
  const first = world.startBridge();
  world.github.queueJob({ ...JOB, durationMs: 1000 });
  await world.until(what, isReached);
  await world.kill(first);
  world.github.faults.add({ on: 'none', fault: { kind: 'latency', ms: 0 } });
}

describe('kill -9 of the bridge', () => {
  it('after its request: the next bridge continues with the request', async () => {
    world.launcher.mode = 'wait';
    await killAt('the request', () => world.records('requests').size === 1);
    world.launcher.mode = 'serve';
    world.startBridge();
    await world.untilServed();
    expectServedOnce();
    expect(world.launcher.launched.length).toBe(1);
  });

  it('before the answer to the registration: the node gets another registration', async () => {
    const on = 'runnerscalesets.generateJitConfig';
    const rule = world.github.faults.add({ on, times: 1, fault: { kind: 'hang', when: 'after' } });
    await killAt('the registration', () => rule.hits > 0 && world.github.inspect.runners().length === 1);
    expect(node()).toMatchObject({ state: 'in-use', user_data: { github: { started: false } } });
    world.startBridge();
    await world.untilServed();
    expectServedOnce();
    expect(world.launcher.launched.length).toBe(1);
  });

  it('while the job runs: the next bridge waits for its end and returns the node', async () => {
    await killAt('the job runs', isRunning);
    expect(world.github.inspect.jobs()[0]?.state).not.toBe('completed');
    world.startBridge();
    await world.untilServed();
    expectServedOnce();
    expect(world.launcher.launched.length).toBe(1);
  });

  it('after the end of the job: the next bridge returns the node', async () => {
    await killAt('the job runs', isRunning);
    await world.until('the job ends', () => world.github.inspect.jobs()[0]?.state === 'completed');
    world.startBridge();
    await world.untilServed();
    expectServedOnce();
  });

  it('after the intention to start a runner: its node is never started for another one', async () => {
    world.github.configure({ jobLockMs: 1500 });
    await killAt('the job runs', isRunning);
    const [id = ''] = world.records('nodes').keys();
    // For the next bridge this is the same as a bridge that was killed before it started the runner.
    world.killRunner(id);
    world.github.queueJob(JOB);
    world.startBridge();
    await world.untilServed();
    const [, second] = world.github.inspect.jobs();
    expect([second?.result, second?.startedBy.length]).toEqual(['succeeded', 1]);
    expect(world.startsOn(id)).toBe(1);
  });
});

describe('two bridges', () => {
  let first: RunningBridge;
  const served = (bridge: string) => (): boolean => world.record()?.bridge === bridge;

  beforeEach(async () => {
    first = world.startBridge();
    await world.until('the first bridge serves', served('bridge-1'));
    world.startBridge();
  });

  it('one serves, and the other continues at once when it stops', async () => {
    world.github.queueJob({ ...JOB, durationMs: 2000 });
    await world.until('the job runs', isRunning);
    await world.stopBridge(first);
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
    expect(world.record()?.bridge).toBe('bridge-2');
    expect(world.lines.filter((line) => line.includes('session of the scale set'))).toEqual([]);
  });

  it('a bridge that loses its ZooKeeper session stops to serve', async () => {
    world.github.queueJob({ ...JOB, durationMs: 2000 });
    await world.until('the job runs', isRunning);
    world.expire(first);
    await world.until('the second bridge serves', served('bridge-2'));
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });
});

describe('GitHub', () => {
  it('away for a time: jobs in progress end, and later ones are served', async () => {
    world.startBridge();
    world.github.queueJob({ ...JOB, durationMs: 1000 });
    await world.until('the job runs', isRunning);
    world.github.goAway(1500);
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });

  it('loses the session: another one is opened', async () => {
    world.startBridge();
    await world.until('a session', () => world.github.inspect.scaleSets()[0]?.session !== undefined);
    world.github.loseSession('linux');
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });

  it.each(['admin', 'queue', 'installation'] as const)('revokes %s tokens: they are renewed', async (kind) => {
    world.startBridge();
    await world.until('a session', () => world.github.inspect.scaleSets()[0]?.session !== undefined);
    world.github.revokeTokens(kind);
    if (kind === 'installation') world.github.revokeTokens('admin');
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });

  it.each([-240, 240])('has a clock that differs by %d s', async (seconds) => {
    world.github.configure({ clockAheadMs: seconds * 1000 });
    world.startBridge();
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });

  it.each([
    ['429 with Retry-After', { kind: 'status', status: 429, retryAfter: 1 }],
    ['503', { kind: 'status', status: 503 }],
    ['a lost answer', { kind: 'cut', when: 'after' }],
    ['the page of a proxy', { kind: 'proxy', status: 200 }],
  ] as const)('%s to any call is survived', async (_name, fault) => {
    // A session whose answer was lost ends by itself only.
    world.github.configure({ sessionExpiryMs: 2000 });
    for (const on of ['apps', 'runners', 'runnerscalesets', 'sessions', 'messages', 'agents']) {
      world.github.faults.add({ on, fault });
    }
    world.startBridge();
    world.github.queueJob(JOB);
    await world.untilServed();
    expectServedOnce();
  });
});

describe('nodes', () => {
  it('that cannot be reached at first are reached later, and their runner starts once', async () => {
    world.startBridge();
    world.setReachable('0000000000', false);
    world.github.queueJob(JOB);
    await world.until('an attempt', () => world.sshCalls().includes('node-0000000000'));
    world.setReachable('0000000000', true);
    await world.untilServed();
    expectServedOnce();
  });

  it('whose connection breaks keep their runner', async () => {
    world.startBridge();
    world.github.queueJob({ ...JOB, durationMs: 1500 });
    await world.until('the job runs', isRunning);
    world.killSsh();
    await world.untilServed();
    expectServedOnce();
    expect(world.launcher.launched.length).toBe(1);
  });

  it('whose instance is lost are returned', async () => {
    world.github.configure({ jobLockMs: 500, runnerTimeoutMs: 500 });
    world.startBridge();
    world.github.queueJob({ ...JOB, behaviour: 'hangs-in-job' });
    await world.until('the job runs', isRunning);
    const [id = ''] = world.records('nodes').keys();
    await world.interrupt(id);
    await world.until('the node is returned', () => world.launcher.deleted.includes(id));
    await world.untilServed();
  });
});

describe('registrations', () => {
  it('without a runner are deleted, and those of other programs are kept', async () => {
    world.startBridge();
    await world.until('a session', () => world.github.inspect.scaleSets()[0]?.session !== undefined);
    const own = await world.register('linux', 'linux-0123456789abcdef');
    const other = await world.register('linux', 'linux-by-hand');
    await world.until('the registration is deleted', () => !world.agents().includes(own));
    expect(world.agents()).toEqual([other]);
  });
});
