/**
 * Tests of requests that wait for capacity: their order, the capacity reserved for them, and the eviction of ready
 * nodes.
 */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MIN_READY_REQUESTOR, type JsonObject } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { BACKFILL_WINDOW_MS } from '../src/context.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (poolMore: JsonObject = {}, more: JsonObject = {}): JsonObject =>
  provider('demo', [pool('main', ['small', 'large'], poolMore)], more);

/** Creates a ready node of the label that is not allocated. */
async function idle(label: string, options = {}): Promise<string> {
  const id = await world.submit([label], options);
  const [node] = await world.fulfilled(id);
  await world.during(world.requestor.withdraw(id));
  await world.until('it is free', () => world.nodes().get(node!)?.allocated_to === null);
  return node!;
}

function keep(minReady: Readonly<Record<string, number>>): Partial<NodepoolConfig> {
  const labels = Object.entries(minReady).map(([name, count]) => ({
    name,
    minReady: count,
    maxReadyAgeMs: Infinity,
    maxWaitMs: Infinity,
  }));
  return { labels: new Map(labels.map((label) => [label.name, label])) };
}

const bigRequest = (count: number): string[] => Array.from({ length: count }, () => 'large');

/**
 * An endless flow of single-node requests: each fulfilled request is replaced, and its node is returned after `holdMs`.
 */
class Flood {
  private readonly waiting = new Set<string>();
  private readonly inUse: { readonly id: string; readonly until: number }[] = [];
  served = 0;

  constructor(
    private readonly labels: readonly string[],
    private readonly holdMs: number,
    private readonly options = {},
  ) {}

  async begin(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) this.waiting.add(await world.submit(this.labels, this.options));
  }

  /** Continues the flow until the condition holds. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const deadline = world.clock.monotonic() + 1_800_000;
    while (!condition()) {
      if (world.clock.monotonic() > deadline) throw new Error(`timed out waiting until ${what}`);
      for (const id of [...this.waiting]) {
        if (world.stateOf(id) !== 'fulfilled') continue;
        this.waiting.delete(id);
        this.inUse.push({ id, until: world.clock.monotonic() + this.holdMs });
        this.served += 1;
        this.waiting.add(await world.submit(this.labels, this.options));
      }
      while (this.inUse[0] !== undefined && this.inUse[0].until <= world.clock.monotonic()) {
        await world.giveBack(this.inUse.shift()!.id);
      }
      await world.clock.advance(500);
    }
  }
}

describe('a large request among many small ones', () => {
  it.each([['one launcher', 1] as const, ['two launchers that serve the pool', 2] as const])(
    'is overtaken while it is young, and served within a bound, by %s',
    async (_, launchers) => {
      for (let i = 1; i <= launchers; i += 1) await world.launcher([demo({ 'max-servers': 10 })], `launcher${i}`);
      const flood = new Flood(['small'], 20_000);
      await flood.begin(20);
      await flood.until('the pool is full', () => world.nodes().size === 10);
      const large = await world.submit(bigRequest(10));
      const since = world.clock.monotonic();
      const before = flood.served;
      await flood.until('it is old', () => world.clock.monotonic() - since >= BACKFILL_WINDOW_MS - 5000);
      expect(world.stateOf(large)).toBe('requested');
      expect(flood.served - before).toBeGreaterThan(10);
      await flood.until('it is served', () => world.stateOf(large) === 'fulfilled');
      // The bound is the backfill window, 20 s until the nodes in use are returned, and 30 s for the request's
      // launches.
      expect(world.clock.monotonic() - since).toBeLessThan(BACKFILL_WINDOW_MS + 20_000 + 30_000);
      const atEnd = flood.served;
      await world.giveBack(large);
      await flood.until('the flood goes on', () => flood.served > atEnd + 5);
    },
  );

  it('does not delay requests of other pools, nor those of other tenants within their limits', async () => {
    const sections = [
      provider('demo', [pool('main', ['large'], { 'max-servers': 4 }), pool('other', ['small'], { 'max-servers': 4 })]),
    ];
    await world.launcher(sections, 'launcher1', { tenantLimits: new Map([['red', { instances: 2 }]]) });
    const inUse = await world.served(['large', 'large']);
    const large = await world.submit(bigRequest(4));
    const red = await world.served(['small', 'small'], { tenant: 'red' });
    const redWaits = await world.submit(['small'], { tenant: 'red' });
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    expect([world.stateOf(large), world.stateOf(redWaits)]).toEqual(['requested', 'requested']);
    await world.served(['small']);
    await world.giveBack(inUse);
    await world.fulfilled(large);
    await world.giveBack(red);
    await world.fulfilled(redWaits);
  });

  it('reserves nothing after it is withdrawn', async () => {
    await world.launcher([demo({ 'max-servers': 2 })]);
    const inUse = await world.served(['small']);
    const large = await world.submit(bigRequest(2));
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    const small = await world.submit(['small']);
    await world.clock.advance(1000);
    expect(world.stateOf(small)).toBe('requested');
    await world.during(world.requestor.withdraw(large));
    await world.fulfilled(small);
    await world.giveBack(inUse);
  });

  it('is overtaken by requests before it in the order of service', async () => {
    await world.launcher([demo({ 'max-servers': 2 })]);
    await world.served(['small']);
    const large = await world.submit(bigRequest(2));
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    await world.served(['small'], { priority: 100 });
    expect(world.stateOf(large)).toBe('requested');
  });

  it('reserves the capacity of the provider that another of its pools would use', async () => {
    world.cloud.configure({ quota: { instances: 4, cores: Infinity, ram: Infinity } });
    await world.launcher([provider('demo', [pool('a', ['small']), pool('b', ['large'])])]);
    const flood = new Flood(['small'], 20_000);
    await flood.begin(6);
    await flood.until('the provider is full', () => world.nodes().size === 4);
    const large = await world.submit(bigRequest(4));
    await flood.until('it is served', () => world.stateOf(large) === 'fulfilled');
  });
});

describe('requests of different priorities', () => {
  it('a lower one never overtakes a higher one that waits for the same limit, at any age', async () => {
    await world.launcher([demo({ 'max-servers': 4 })]);
    const inUse = [
      await world.served(['small']),
      await world.served(['small']),
      await world.served(['small', 'small']),
    ];
    const large = await world.submit(bigRequest(4), { priority: 100 });
    const others: string[] = [];
    for (let i = 0; i < 24; i += 1) others.push(await world.submit(['small'], { priority: 300 }));
    for (const id of inUse) {
      expect(others.map((id) => world.stateOf(id))).toEqual(others.map(() => 'requested'));
      await world.giveBack(id);
      await world.clock.advance(2000);
    }
    await world.fulfilled(large);
    expect(others.map((id) => world.stateOf(id))).toEqual(others.map(() => 'requested'));
    await world.giveBack(large);
    for (const id of others) {
      await world.fulfilled(id);
      await world.giveBack(id);
    }
  });

  it('a lower one does not use the ready nodes that a higher one needs', async () => {
    await world.launcher([demo({ 'max-servers': 3 })]);
    const free = await idle('large');
    const inUse = await world.served(['small', 'small']);
    const better = await world.submit(bigRequest(3), { priority: 100 });
    const worse = await world.submit(['large'], { priority: 300 });
    await world.clock.advance(2000);
    expect([world.stateOf(better), world.stateOf(worse)]).toEqual(['requested', 'requested']);
    await world.giveBack(inUse);
    expect(await world.fulfilled(better)).toContain(free);
    await world.giveBack(better);
    await world.fulfilled(worse);
  });

  it('a higher one that waits for the limit of its tenant delays no other tenant', async () => {
    await world.launcher([demo({ 'max-servers': 4 })], 'launcher1', {
      tenantLimits: new Map([['red', { instances: 2 }]]),
    });
    const inUse = await world.served(['small', 'small'], { tenant: 'red' });
    const better = await world.submit(['small', 'small'], { tenant: 'red', priority: 100 });
    await world.served(['small', 'small'], { tenant: 'blue', priority: 300 });
    expect(world.stateOf(better)).toBe('requested');
    await world.giveBack(inUse);
    await world.fulfilled(better);
  });
});

describe('max-concurrency', () => {
  it('is shared fairly by the pools of a provider', async () => {
    world.cloud.configure({ bootTimeMs: [5000, 5000] });
    const pools = [pool('a', ['small']), pool('b', ['large'])];
    await world.launcher([provider('demo', pools, { 'max-concurrency': 1 })]);
    const small = await world.submitEach(5, ['small']);
    const large = await world.submitEach(5, ['large']);
    await world.fulfilled(large[1]!);
    expect(small.filter((id) => world.stateOf(id) === 'fulfilled').length).toBeLessThanOrEqual(3);
    for (const id of [...small, ...large]) await world.fulfilled(id);
  });

  it('gives the share of a pool without demand to others', async () => {
    world.cloud.configure({ bootTimeMs: [5000, 5000] });
    const pools = [pool('a', ['small']), pool('b', ['large'])];
    await world.launcher([provider('demo', pools, { 'max-concurrency': 1 })]);
    const first = await world.submit(['small']);
    const gone = await world.submit(['large']);
    const second = await world.submit(['small']);
    await world.clock.advance(1000);
    await world.during(world.requestor.withdraw(gone));
    await world.fulfilled(first);
    await world.fulfilled(second);
  });
});

describe('when capacity is short', () => {
  it('the oldest ready node of another label is evicted, and no more than needed', async () => {
    await world.launcher([demo({ 'max-servers': 3 })]);
    const nodes = [await idle('small'), await idle('small', { reuse: false }), await idle('small', { reuse: false })];
    const [launched] = await world.fulfilled(await world.submit(['large']));
    expect([...world.nodes().keys()].sort()).toEqual([nodes[1], nodes[2], launched]);
  });

  it('a small node is not evicted if the large one that is evicted suffices', async () => {
    const sizes = { small: 'small', other: 'large', large: 'large' };
    const labels = Object.entries(sizes).map(([name, size]) => ({ name, 'cloud-image': 'debian', size }));
    await world.launcher([demo({ labels, 'max-servers': 2, 'max-ram': 1024 + 16_384 })]);
    const small = await idle('small');
    const other = await idle('other');
    const [launched] = await world.fulfilled(await world.submit(['large']));
    expect([...world.nodes().keys()].sort()).toEqual([small, launched]);
    expect(world.nodes().has(other)).toBe(false);
  });

  it('as many nodes are evicted as the request needs', async () => {
    await world.launcher([demo({ 'max-servers': 3 })]);
    for (let i = 0; i < 3; i += 1) await idle('small', { reuse: false });
    await world.served(['large', 'large']);
    expect([...world.nodes().values()].map(({ type }) => type)).toEqual([['small'], ['large'], ['large']]);
  });

  it('a node that the request can use is allocated, and not evicted', async () => {
    await world.launcher([demo({ 'max-servers': 2 })]);
    const small = await idle('small');
    const large = await idle('large');
    const nodes = await world.fulfilled(await world.submit(['large', 'large']));
    expect(nodes).toContain(large);
    expect([...world.nodes().keys()]).not.toContain(small);
  });

  it('a node that the request can use is not evicted for its other nodes', async () => {
    await world.launcher([demo({ 'max-servers': 2 })]);
    const inUse = await world.served(['large']);
    const small = await idle('small');
    const waits = await world.submit(['small', 'large']);
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    expect(world.nodes().get(small)?.state).toBe('ready');
    await world.giveBack(inUse);
    expect(await world.fulfilled(waits)).toContain(small);
  });

  it('a node that an earlier request of a tenant at its limit will use is not evicted', async () => {
    await world.launcher([demo({ 'max-servers': 2 })], 'launcher1', {
      tenantLimits: new Map([['red', { instances: 1 }]]),
    });
    const small = await idle('small', { tenant: 'blue' });
    const inUse = await world.served(['large'], { tenant: 'red' });
    const earlier = await world.submit(['small'], { tenant: 'red', priority: 100 });
    await world.clock.advance(1000);
    const later = await world.submit(['large'], { tenant: 'blue' });
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    expect(world.nodes().get(small)?.state).toBe('ready');
    await world.giveBack(inUse);
    expect(await world.fulfilled(earlier)).toEqual([small]);
    await world.fulfilled(later);
  });

  it('nothing is evicted if the request would still not fit', async () => {
    await world.launcher([demo({ 'max-servers': 3 })]);
    const inUse = await world.served(['small']);
    const inUseNodes = await world.during(world.requestor.take(inUse));
    const free = await idle('small');
    const waits = await world.submit(bigRequest(3));
    await world.clock.advance(2 * BACKFILL_WINDOW_MS);
    expect(world.nodes().get(free)?.state).toBe('ready');
    await world.during(world.requestor.giveBack(inUseNodes));
    await world.fulfilled(waits);
    expect(world.nodes().has(free)).toBe(false);
  });

  it('nothing is evicted while earlier deletions are in progress', async () => {
    world.cloud.configure({ deleteTimeMs: [30_000, 30_000] });
    await world.launcher([demo({ 'max-servers': 2 })]);
    const free = await idle('small');
    const inUse = await world.served(['small'], { reuse: false });
    await world.giveBack(inUse);
    await world.served(['large']);
    expect(world.nodes().get(free)?.state).toBe('ready');
  });

  it('a node of another pool is evicted when the provider is full', async () => {
    world.cloud.configure({ quota: { instances: 2, cores: Infinity, ram: Infinity } });
    await world.launcher([provider('demo', [pool('a', ['small']), pool('b', ['large'])])]);
    const nodes = [await idle('small'), await idle('small', { reuse: false })];
    await world.served(['large']);
    expect(world.nodes().has(nodes[0]!)).toBe(false);
    expect(world.nodes().get(nodes[1]!)?.state).toBe('ready');
  });

  it('a node of the tenant is evicted when the tenant is at its limit', async () => {
    await world.launcher([demo()], 'launcher1', { tenantLimits: new Map([['red', { instances: 1 }]]) });
    const other = await idle('small', { tenant: 'blue' });
    const own = await idle('small', { tenant: 'red', reuse: false });
    await world.served(['large'], { tenant: 'red' });
    expect(world.nodes().has(own)).toBe(false);
    expect(world.nodes().get(other)?.state).toBe('ready');
  });

  it('a request that refuses ready nodes evicts one that it could have used', async () => {
    await world.launcher([demo({ 'max-servers': 1 })]);
    const free = await idle('small');
    expect(await world.fulfilled(await world.submit(['small'], { reuse: false }))).not.toEqual([free]);
  });

  it('a ready node is evicted when the cloud rejects more than its limits say', async () => {
    await world.launcher([demo()]);
    const free = await idle('small');
    const answers = world.cloud.describe.bind(world.cloud);
    world.cloud.configure({ quota: { instances: 1, cores: Infinity, ram: Infinity } });
    world.cloud.describe = async () => ({ ...(await answers()), quota: { instances: -1, cores: -1, ram: -1 } });
    await world.served(['large']);
    expect(world.nodes().has(free)).toBe(false);
  });

  it.each([1, 2, 3, 4, 5])('two launchers evict no more than needed (seed %i)', async (seed) => {
    await world.end();
    world = new World(seed, (random) => Math.floor(random.next() * 10));
    for (const name of ['one', 'two']) await world.launcher([demo({ 'max-servers': 4 })], name);
    for (let i = 0; i < 4; i += 1) await idle('small', { reuse: false });
    await world.served(['large']);
    await world.clock.advance(60_000);
    expect([...world.nodes().values()].filter(({ type }) => (type as string[])[0] === 'small')).toHaveLength(3);
  });
});

describe('min-ready', () => {
  it('of another launcher uses no capacity that a request waits for, whatever its priority', async () => {
    await world.launcher([demo({ 'max-servers': 2 })]);
    const inUse = await world.served(['large']);
    const waits = await world.submit(['large', 'large'], { priority: 950 });
    await world.clock.advance(1000);
    const theirs = await world.submit(['small'], { priority: 900, requestor: MIN_READY_REQUESTOR, reuse: false });
    await world.inState(theirs, 'failed');
    expect(world.nodes().size).toBe(1);
    await world.giveBack(inUse);
    await world.fulfilled(waits);
  });

  it('evicts no nodes, and uses no capacity that another request waits for', async () => {
    await world.launcher([demo({ 'max-servers': 2 })], 'launcher1', keep({ small: 1 }));
    await world.until('it is ready', () => [...world.nodes().values()].some(({ state }) => state === 'ready'));
    const first = await world.served(['large']);
    const second = await world.served(['large']);
    const third = await world.submit(['large', 'large']);
    await world.giveBack(first);
    await world.clock.advance(30_000);
    // Half of the capacity that the third request needs is free, and no other request takes it.
    expect(world.nodes().size).toBe(1);
    expect([...world.records(REQUESTS).values()].filter(({ requestor }) => requestor === MIN_READY_REQUESTOR)).toEqual(
      [],
    );
    await world.giveBack(second);
    await world.fulfilled(third);
    await world.giveBack(third);
    await world.until('there is one ready again', () =>
      [...world.nodes().values()].some(({ state, type }) => state === 'ready' && (type as string[])[0] === 'small'),
    );
  });
});
