/** Tests that several launchers of one label do each piece of work once, and that none of them can hold work back. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sleep, TransientError, type JsonObject, type NodeRequestHandler, type Provider } from '@nodepool/core';
import { faultyDriver, UnansweredCalls } from './support/faulty-driver.js';
import { World, pool, provider, type RunningLauncher } from './support/world.js';

/** Time until a further launcher acts in place of one that does not, and a margin for launch and hand-over (ms). */
const BOUND_MS = 2500;

let world: World;
beforeEach(() => {
  // With this latency, all launchers see a request before any of them can lock it.
  world = new World(1, (random) => 1 + random.next());
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (more: JsonObject = {}): JsonObject => provider('demo', [pool('main', ['small', 'large'], more)]);

/** Starts launchers with these sections. */
async function started(...sections: readonly JsonObject[]): Promise<RunningLauncher[]> {
  const launchers: RunningLauncher[] = [];
  for (const [index, section] of sections.entries()) {
    launchers.push(await world.launcher([section], `launcher${index + 1}`));
  }
  // All of them know all pools.
  await world.clock.advance(5000);
  return launchers;
}

/** Returns the numbers of writes of each launcher during `work`. */
async function writesDuring(launchers: readonly RunningLauncher[], work: () => Promise<void>): Promise<number[]> {
  const before = launchers.map(({ zk }) => zk.counters.writes);
  await work();
  return launchers.map(({ zk }, index) => zk.counters.writes - (before[index] ?? 0));
}

/** Requests nodes at the same time, uses them and waits until they are deleted. */
async function lives(count: number, label: string): Promise<void> {
  const ids = await world.submitEach(count, [label]);
  for (const id of ids) await world.fulfilled(id);
  for (const id of ids) await world.giveBack(id);
  await world.until('the nodes are deleted', () => world.nodes().size === 0);
}

type Launch = NodeRequestHandler['launch'];

/** Returns the override of a provider that launches nodes in another way. */
function launchingWith(each: Provider, replaced: (launch: Launch) => Launch): Partial<Provider> {
  return {
    getRequestHandler: (...args) =>
      new Proxy(each.getRequestHandler(...args), {
        get: (target, name): unknown =>
          name === 'launch' ? replaced((options) => target.launch(options)) : Reflect.get(target, name),
      }),
  };
}

/** Submits a request for each label at the same time. Resolves with the virtual time (ms) until all are fulfilled. */
async function timeToServe(labels: readonly string[]): Promise<number> {
  const began = world.clock.monotonic();
  const ids = await world.during(Promise.all(labels.map((label) => world.requestor.submit([label]))));
  for (const id of ids) await world.fulfilled(id);
  return world.clock.monotonic() - began;
}

describe('three launchers of the same pool', () => {
  it('write as much as one launcher', async () => {
    const alone = await started(demo());
    const [once = NaN] = await writesDuring(alone, () => lives(20, 'small'));
    const launchers = [...alone, await world.launcher([demo()], 'b'), await world.launcher([demo()], 'c')];
    await world.clock.advance(5000);
    const writes = await writesDuring(launchers, () => lives(20, 'small'));
    expect(writes.sort((a, b) => b - a)).toEqual([once, 0, 0]);
  });

  it('mark ready nodes that are too old for deletion once', async () => {
    const small = { name: 'small', minReady: 0, maxReadyAgeMs: 60_000, maxWaitMs: Infinity };
    const labels = { labels: new Map([['small', small]]) };
    const launchers: RunningLauncher[] = [];
    for (const name of ['a', 'b', 'c']) launchers.push(await world.launcher([demo()], name, labels));
    const ids = await world.submitEach(6, ['small']);
    for (const id of ids) await world.fulfilled(id);
    for (const id of ids) await world.during(world.requestor.withdraw(id));
    await world.clock.advance(5000);
    const writes = await writesDuring(launchers, async () => {
      await world.until('the nodes are deleted', () => world.nodes().size === 0);
    });
    // To mark a node and to delete it takes two transactions each.
    expect(writes.sort((a, b) => b - a)).toEqual([6 * 4, 0, 0]);
  });

  it('delete nodes without their launcher when it is gone', async () => {
    const launchers = await started(demo(), demo(), demo());
    const ids = await world.submitEach(12, ['small']);
    for (const id of ids) await world.fulfilled(id);
    const busiest = [...launchers].sort((a, b) => b.zk.counters.writes - a.zk.counters.writes);
    await busiest[0]?.stop();
    const writes = await writesDuring(busiest.slice(1), async () => {
      for (const id of ids) await world.giveBack(id);
      await world.until('the nodes are deleted', () => world.nodes().size === 0);
    });
    expect(writes.reduce((sum, each) => sum + each, 0)).toBe(24);
    expect(Math.min(...writes)).toBeGreaterThan(0);
  });

  it('serve requests without a launcher that does not answer', async () => {
    const [first] = await started(demo(), demo(), demo());
    if (first === undefined) throw new Error('no launcher was started');
    world.server.partition(first.zk, 'silent');
    expect(await timeToServe(['small', 'large'])).toBeLessThan(BOUND_MS);
    // The launcher is not waited for again, although its session lives.
    expect(await timeToServe(['small', 'large'])).toBeLessThan(500);
    world.server.heal(first.zk);
  });
});

describe('launchers with different pools', () => {
  const section = (name: string, more: JsonObject = {}): JsonObject => provider(name, [pool('main', ['small'], more)]);

  it('share the requests, each request tried by one of them', async () => {
    const launchers = await started(section('a'), section('b'), section('c'));
    const writes = await writesDuring(launchers, () => lives(30, 'small'));
    expect(Math.min(...writes)).toBeGreaterThanOrEqual(20);
    expect(writes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(30 * 6);
  });

  it('serve in time what a full launcher is preferred for', async () => {
    await started(section('a', { 'max-servers': 1 }), section('b'), section('c'));
    const began = world.clock.monotonic();
    const ids = await world.submitEach(12, ['small']);
    for (const id of ids) await world.fulfilled(id);
    expect(world.clock.monotonic() - began).toBeLessThan(BOUND_MS);
  });

  it('decline one after the other without competing', async () => {
    const launchers = await started(section('a'), section('b'), section('c'));
    const writes = await writesDuring(launchers, async () => {
      await world.inState(await world.submit(['unknown']), 'failed');
    });
    expect(writes).toEqual([2, 2, 2]);
  });
});

describe('a launcher that alone cannot reach the cloud', () => {
  let cut: 'silent' | 'refused' | undefined;
  beforeEach(() => {
    cut = undefined;
  });

  /** Returns a provider whose calls get no answer, or are refused, while `cut` says so. */
  const faulty = (each: Provider): Partial<Provider> => {
    if (cut === undefined) return {};
    const fails = (): Promise<never> =>
      cut === 'silent' ? new Promise<never>(() => undefined) : Promise.reject(new TransientError('refused'));
    return {
      listNodes: fails,
      cleanupLeakedResources: fails,
      cleanupNode: fails,
      ...launchingWith(each, () => fails),
    };
  };

  it.each([
    ['does not answer', 'silent', 'silent'],
    ['refuses connections', 'silent', 'refused'],
    ['refuses connections and then does not answer', 'refused', 'silent'],
  ] as const)(
    'leaves its launches and deletions to another one, and the limit of the pool with them: it %s',
    async (_, first, second) => {
      const section = demo({ 'max-servers': 2 });
      await world.launcher([section], 'launcher1', faultyDriver(world.cloud, faulty));
      await world.clock.advance(5000);
      const used = await world.submit(['small']);
      await world.fulfilled(used);
      cut = first;
      await world.giveBack(used);
      await world.clock.advance(200);
      cut = 'silent';
      const ids = await world.submitEach(3, ['small']);
      await world.clock.advance(500);
      cut = second;
      // The first launcher holds a launch and a deletion, which fill the pool.
      expect([...world.nodes().values()].map(({ state }) => state).sort()).toEqual(['building', 'deleting']);
      await world.launcher([section], 'launcher2');
      const began = world.clock.monotonic();
      for (const id of ids) {
        await world.fulfilled(id);
        await world.giveBack(id);
      }
      await world.until('the nodes are deleted', () => world.nodes().size === 0);
      expect(world.clock.monotonic() - began).toBeLessThan(60_000);
      expect(world.cloud.existingInstances()).toEqual([]);
      cut = undefined;
      await world.clock.advance(120_000);
    },
  );

  it.each([1, 20])(
    'leaves launches with an instance, too, which the other one continues: %d of them',
    async (count) => {
      world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
      const unanswered = new UnansweredCalls();
      const silent = (each: Provider): Partial<Provider> => ({
        start: async (context) => {
          unanswered.start(context);
          await each.start(context);
        },
        ...launchingWith(each, (launch) => async (options) => {
          const launched = await launch(options);
          return cut === undefined ? launched : unanswered.call();
        }),
        ...(cut === undefined ? {} : { listNodes: unanswered.call, cleanupLeakedResources: unanswered.call }),
      });
      await world.launcher([demo()], 'launcher1', faultyDriver(world.cloud, silent));
      await world.clock.advance(5000);
      const ids = await world.submitEach(count, ['small']);
      const instances = (): readonly unknown[] => [...world.nodes().values()].map((node) => node.external_id).sort();
      await world.until('the instances boot', () => instances().length === count && !instances().includes(null));
      const booting = instances();
      cut = 'silent';
      const began = world.clock.monotonic();
      await world.launcher([demo()], 'launcher2');
      for (const id of ids) await world.fulfilled(id);
      expect(instances()).toEqual(booting);
      expect(world.clock.monotonic() - began).toBeLessThan(60_000);
      expect(world.cloud.existingInstances()).toHaveLength(count);
      for (const id of ids) await world.giveBack(id);
      await world.until('the nodes are deleted', () => world.nodes().size === 0);
      cut = undefined;
      await world.clock.advance(120_000);
    },
  );
});

describe('launchers of a cloud that answers only the creation of instances late', () => {
  it.each([1, 2])('%d of them serve requests at their first attempt', async (count) => {
    let created = 0;
    const slow = (each: Provider): Partial<Provider> =>
      launchingWith(each, (launch) => async (options) => {
        created += 1;
        await sleep(world.clock, 15_000, options.signal);
        return launch(options);
      });
    for (let index = 1; index <= count; index += 1) {
      await world.launcher([demo({ 'max-servers': 2 })], `launcher${index}`, faultyDriver(world.cloud, slow));
    }
    await world.clock.advance(5000);
    const began = world.clock.monotonic();
    for (const id of await world.submitEach(2, ['small'])) await world.fulfilled(id);
    expect(world.clock.monotonic() - began).toBeLessThan(25_000);
    expect(created).toBe(2);
  });
});
