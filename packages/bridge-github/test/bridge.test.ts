/** The capacity that GitHub gets, changed settings, and other programs with the same scale set. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { LABEL } from './support/launcher.js';
import { serviceOf, World } from './support/world.js';

const JOB = { repository: 'acme/app', labels: ['linux'] } as const;

let world: World;

beforeEach(async () => {
  world = await World.start();
});
afterEach(async () => {
  await world.stop();
});

function session(name = 'linux') {
  return world.github.inspect.scaleSets().find((set) => set.name === name)?.session;
}

it('GitHub keeps jobs while the pool is paused, and assigns them once it has capacity', async () => {
  await world.launcher.publish({ paused: true });
  world.startBridge();
  world.github.queueJob(JOB);
  await world.until('the capacity 0', () => session()?.capacity === 0);
  expect(world.github.inspect.jobs()[0]?.state).toBe('queued');
  await world.until(
    'the reason',
    () => world.record()?.capacityReason.includes('pool main of provider cloud') === true,
  );
  await world.launcher.publish({ paused: false });
  await world.untilServed();
  expect(world.github.inspect.jobs()[0]?.result).toBe('succeeded');
});

it('scale sets of one label share the capacity that launchers report', async () => {
  const pool = { provider: 'cloud', pool: 'main', free: { instances: 9, cores: 10 } };
  const needs = { [LABEL]: { instances: 1, cores: 2 } };
  const providers = [{ provider: 'cloud', free: {} }];
  world.askLauncher = () => Promise.resolve({ pools: [{ ...pool, needs }], providers, tenants: [] });
  await world.registerLauncher();
  world.startBridge(world.settings({}, { name: 'other', labels: ['other'] }));
  await world.until('the capacity', () => session()?.capacity === 3 && session('other')?.capacity === 2);
});

it('a scale set that is removed from the settings serves its running jobs, and its session is closed', async () => {
  const { bridge } = world.startBridge(world.settings({}, { name: 'other', labels: ['other'] }));
  world.github.queueJob({ ...JOB, durationMs: 1000 });
  await world.until('the job runs', () => world.github.inspect.jobs()[0]?.state === 'running');
  bridge.apply(world.settings({ name: 'other', labels: ['other'] }));
  await world.until('the session is closed', () => session() === undefined);
  expect(world.github.inspect.jobs()[0]?.result).toBe('succeeded');
  expect(session('other')).toBeDefined();
});

it('a changed maximum is reported to GitHub', async () => {
  const { bridge } = world.startBridge(world.settings({ minRunners: 1, maxRunners: 1 }));
  await world.until('a runner', () => world.github.inspect.runners().length === 1 && session()?.capacity === 1);
  bridge.apply(world.settings({ minRunners: 2, maxRunners: 2 }));
  await world.until('another runner', () => world.github.inspect.runners().length === 2 && session()?.capacity === 2);
});

it('a bridge that is stopped while GitHub opens its session closes the session', async () => {
  world.github.faults.add({ on: 'sessions.create', times: 1, fault: { kind: 'latency', ms: 1000 } });
  const stopped = world.startBridge();
  await world.until('GitHub has opened a session', () => session() !== undefined);
  await world.stopBridge(stopped);
  expect(world.lines.filter((line) => line.includes('Listening for jobs'))).toEqual([]);
  expect(session()).toBeUndefined();
});

it('the session of another program is left alone, and the problem is shown', async () => {
  const first = world.startBridge();
  await world.until('a session', () => session() !== undefined);
  await world.stopBridge(first);
  const { id = 0 } = world.github.inspect.scaleSets()[0] ?? {};
  await serviceOf(world.settings()).openSession(id, 'another program', new AbortController().signal);
  const own = session()?.id;
  world.startBridge();
  await world.until('the problem', () => world.record()?.problem?.includes('another program has the session') === true);
  expect(session()?.id).toBe(own);
});
