/** Tests of the order in which launchers act on the same work, and of the waits of those that do not come first. */

import { describe, expect, it } from '@jest/globals';
import type { NodeRequest } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import type { ComponentEntry, NodeEntry, PoolComponentData } from '@nodepool/store';
import { LauncherOrder, type DecidingPool } from '../src/precedence/launcher-order.js';
import { Precedence } from '../src/precedence/precedence.js';

const COMMON = { hostname: 'host', version: '1', model_api: 0, state: 'running' } as const;
const MAIN: DecidingPool = { priority: 100, provider: 'demo', pool: 'main' };

/** A registry whose entries tests replace. */
class Registry {
  private entries: ComponentEntry[] = [];
  private readonly listeners: (() => void)[] = [];

  *all(): Iterable<ComponentEntry> {
    yield* this.entries;
  }

  onChange(listener: () => void): () => void {
    this.listeners.push(listener);
    return () => undefined;
  }

  set(entries: readonly ComponentEntry[]): void {
    this.entries = [...entries];
    for (const listener of this.listeners) listener();
  }
}

/** Returns the components of a launcher with a pool. `isOurs` is false for other implementations. */
function launcher(
  session: number,
  more: Partial<PoolComponentData> = {},
  isOurs = true,
): readonly [ComponentEntry, ComponentEntry] {
  const configuration = { configuration: { fingerprint: 'f', providers: {}, since: 0 } };
  return [
    {
      path: `/launcher/${session}`,
      session: BigInt(session),
      component: { ...COMMON, kind: 'launcher', ...(isOurs ? configuration : {}) },
    },
    {
      path: `/pool/${session}`,
      session: BigInt(session),
      component: {
        ...COMMON,
        ...{ kind: 'pool', id: `pool-${session}`, name: 'main', provider_name: 'demo', priority: 100, paused: false },
        supported_labels: ['small', 'large'],
        ...more,
      },
    },
  ];
}

const request = (id: string, more: Partial<NodeRequest> = {}): NodeRequest =>
  ({ id, node_types: ['small'], declined_by: [], provider: null, ...more }) as unknown as NodeRequest;

const node = (id: string, poolId: string): NodeEntry =>
  ({ id, node: { provider: 'demo', launcher: poolId } }) as unknown as NodeEntry;

/** Returns what the launcher with this session sees of the registry. */
const seenBy = (registry: Registry, session: number) =>
  ({ components: registry, zooKeeper: { session: { id: BigInt(session) } } }) as unknown as ConstructorParameters<
    typeof LauncherOrder
  >[0];

const ids = Array.from({ length: 60 }, (_, index) => `200-${String(index).padStart(10, '0')}`);

describe('the launcher that reports what all see', () => {
  it('is that of the pool that has done it, else one that the id chooses', () => {
    const registry = new Registry();
    registry.set([...launcher(1), ...launcher(2), ...launcher(3), ...launcher(4, {}, false)]);
    const orders = [1, 2, 3].map((session) => new LauncherOrder(seenBy(registry, session)));
    const reporters = (id: string, poolId: string | null): number[] =>
      orders.flatMap((order, index) => (order.reports(id, poolId) ? [index + 1] : []));
    for (const id of ids) {
      expect(reporters(id, 'pool-2')).toEqual([2]);
      expect(reporters(id, null)).toHaveLength(1);
      // Another implementation reports nothing of this kind.
      expect(reporters(id, 'pool-4')).toEqual(reporters(id, null));
    }
    expect(new Set(ids.flatMap((id) => reporters(id, null)))).toEqual(new Set([1, 2, 3]));
    registry.set([...launcher(1), ...launcher(3)]);
    for (const id of ids) expect([1, 3]).toEqual(expect.arrayContaining(reporters(id, 'pool-2')));
    for (const id of ids) expect(reporters(id, 'pool-2')).toHaveLength(1);
  });

  it('is any that knows no other one', () => {
    const registry = new Registry();
    const order = new LauncherOrder(seenBy(registry, 1));
    expect(order.reports('1', 'pool-2')).toBe(true);
    registry.set(launcher(2));
    expect(order.reports('1', null)).toBe(false);
    registry.set(launcher(1));
    expect(order.reports('1', null)).toBe(true);
  });
});

describe('the order of launchers', () => {
  it('is the same for each launcher and for all requests of a label if their pools are the same', () => {
    const registry = new Registry();
    registry.set([...launcher(1), ...launcher(2), ...launcher(3)]);
    const orders = [1, 2, 3].map((session) => new LauncherOrder(seenBy(registry, session)));
    const [first = []] = orders.map((order) => order.forRequest(request('200-0000000000'), MAIN));
    expect([...first].sort()).toEqual(['1', '2', '3']);
    for (const order of orders) for (const id of ids) expect(order.forRequest(request(id), MAIN)).toEqual(first);
  });

  it('distributes requests to launchers with different pools', () => {
    const registry = new Registry();
    registry.set([1, 2, 3].flatMap((session) => launcher(session, { provider_name: `cloud-${session}` })));
    const order = new LauncherOrder(seenBy(registry, 1));
    const firsts = ids.map((id) => order.forRequest(request(id), MAIN)[0]);
    for (const key of ['1', '2', '3']) expect(firsts.filter((first) => first === key).length).toBeGreaterThan(10);
    expect(ids.map((id) => order.forRequest(request(id, { provider: 'cloud-2' }), MAIN))).toEqual(ids.map(() => ['2']));
  });

  it('omits other implementations, pools of another priority and pools that have declined', () => {
    const registry = new Registry();
    registry.set([
      ...launcher(1),
      ...launcher(2, {}, false),
      ...launcher(3, { priority: 10 }),
      ...launcher(4, { supported_labels: ['large'] }),
      ...launcher(5),
    ]);
    const order = new LauncherOrder(seenBy(registry, 1));
    expect([...order.forRequest(request('200-0000000000'), MAIN)].sort()).toEqual(['1', '5']);
    expect(order.forRequest(request('200-0000000000', { declined_by: ['pool-1'] }), MAIN)).toEqual(['5']);
  });

  it('ends with the launchers whose pools are paused', () => {
    const registry = new Registry();
    const order = new LauncherOrder(seenBy(registry, 1));
    for (const paused of [1, 2, 3]) {
      registry.set([1, 2, 3].flatMap((session) => launcher(session, { paused: session === paused })));
      expect(order.forRequest(request('200-0000000000'), MAIN).at(-1)).toBe(String(paused));
    }
  });

  it('begins the deletion of a node with its launcher', () => {
    const registry = new Registry();
    registry.set([...launcher(1), ...launcher(2), ...launcher(3), ...launcher(4, { provider_name: 'other' })]);
    const order = new LauncherOrder(seenBy(registry, 1));
    for (const id of ids) expect(order.forDeletion(id, 'demo', 'pool-2')[0]).toBe('2');
    const firsts = new Set(ids.map((id) => order.forDeletion(id, 'demo', 'pool-9')[0]));
    expect([...firsts].sort()).toEqual(['1', '2', '3']);
  });
});

describe('a launcher that does not come first', () => {
  const clock = new VirtualClock();
  const registry = new Registry();
  registry.set([...launcher(1), ...launcher(2), ...launcher(3)]);
  const [, second = '', third = ''] = new LauncherOrder(seenBy(registry, 1)).forRequest(request('x'), MAIN);
  const precedenceOf = (key: string): Precedence => new Precedence(seenBy(registry, Number(key)), clock);
  const waitFor = (precedence: Precedence, id: string): number => precedence.waitForRequest(request(id), MAIN, false);

  it('waits by its place, acts then, and does not wait for the silent launcher again', async () => {
    const [one, two] = [precedenceOf(second), precedenceOf(third)];
    expect([waitFor(one, 'a'), waitFor(two, 'a')]).toEqual([500, 1000]);
    await clock.advance(500);
    expect([waitFor(one, 'a'), waitFor(two, 'a')]).toEqual([0, 500]);
    expect(waitFor(one, 'b')).toBe(0);
    await clock.advance(10_000);
    expect(waitFor(one, 'c')).toBe(500);
  });

  it('waits longer while the first launcher takes other requests, but for a limited time', async () => {
    const precedence = precedenceOf(second);
    let waited = 0;
    for (let wait = waitFor(precedence, 'a'); wait > 0; wait = waitFor(precedence, 'a')) {
      await clock.advance(100);
      waited += 100;
      waitFor(precedence, `b${waited}`);
      precedence.taken(`b${waited}`);
    }
    expect(waited).toBeGreaterThanOrEqual(3000);
    expect(waited).toBeLessThanOrEqual(6000);
  });

  it('trusts a launcher again that locks a request', async () => {
    const precedence = precedenceOf(second);
    waitFor(precedence, 'a');
    await clock.advance(500);
    expect([waitFor(precedence, 'a'), waitFor(precedence, 'b')]).toEqual([0, 0]);
    precedence.requestLocked(request('b'));
    expect(waitFor(precedence, 'c')).toBe(500);
  });

  it('waits anew for a request that it could not serve meanwhile', async () => {
    const precedence = precedenceOf(second);
    waitFor(precedence, 'a');
    await clock.advance(60_000);
    expect(waitFor(precedence, 'a')).toBe(500);
  });

  it('leaves the deletion of a node to the launcher of the node', async () => {
    const precedence = precedenceOf(second);
    expect(precedence.waitForDeletion(node('1', `pool-${second}`))).toBe(0);
    const wait = precedence.waitForDeletion(node('2', `pool-${third}`));
    expect(wait).toBeGreaterThan(0);
    await clock.advance(wait);
    expect(precedence.waitForDeletion(node('2', `pool-${third}`))).toBe(0);
    registry.set([...launcher(Number(second))]);
    expect(precedence.waitForDeletion(node('3', `pool-${third}`))).toBe(0);
  });
});
