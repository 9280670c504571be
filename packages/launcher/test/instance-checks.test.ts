/** Tests of the times and the order of the listings that show which ready nodes have lost their instance. */

import { beforeEach, expect, it } from '@jest/globals';
import { sleep, type Instance, type ProviderContext } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { MINUTE_MS, demo, freeNode, notes, world } from './support/cleanup-world.js';

let context: ProviderContext;
/** Time that each listing takes, in milliseconds. */
let takesMs: number;
/** Times at which listings were requested (`Clock.monotonic`, ms). */
let asked: number[];
/** The latest list of instances. */
let latest: readonly Instance[];

beforeEach(() => {
  takesMs = 0;
  asked = [];
});

/** Starts a launcher that lists the instances only to check its nodes, and creates a settled node. */
async function settledNode(): Promise<string> {
  const checksOnly = faultyDriver(world.cloud, (provider) => ({
    start: (parts) => {
      context = parts;
      return provider.start(parts);
    },
    listNodes: async (call) => {
      asked.push(world.clock.monotonic());
      latest = await provider.listNodes(call);
      if (takesMs > 0) await sleep(world.clock, takesMs, call.signal);
      return latest;
    },
    cleanupLeakedResources: () => Promise.resolve(),
  }));
  await world.launcher([demo()], 'launcher1', checksOnly);
  const node = await freeNode();
  await world.clock.advance(MINUTE_MS + 1000);
  return node;
}

const observe = (): ((instances: readonly Instance[]) => void) => context.observeListing?.() ?? (() => undefined);

function destroy(node: string): void {
  world.cloud.destroyInstance(world.nodes().get(node)?.external_id as string);
}

const isNoticed = (): boolean => notes.some(({ message }) => message === 'A ready node is not handed out');

it('a loss is confirmed half a minute after the listing that has shown it first', async () => {
  const node = await settledNode();
  destroy(node);
  await world.until('it is noticed', isNoticed);
  await world.clock.advance(32_000);
  expect(world.nodes().has(node)).toBe(false);
});

it('a listing that was requested before the latest and arrives after it changes nothing', async () => {
  const node = await settledNode();
  await world.clock.advance(15_000);
  const late = observe();
  await world.clock.advance(1000);
  await world.during(context.checkInstances?.() ?? Promise.resolve());
  late([]);
  await world.clock.advance(1000);
  expect(isNoticed()).toBe(false);
  expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
});

it('a node that became free after a listing was requested is not deleted because of it', async () => {
  await settledNode();
  const id = await world.submit(['small']);
  const [node = ''] = await world.fulfilled(id);
  await world.clock.advance(15_000);
  const late = observe();
  await world.during(world.requestor.withdraw(id));
  await world.until('it is free', () => world.nodes().get(node)?.allocated_to !== id);
  late(latest.map((each) => ({ ...each, deleted: true })));
  await world.clock.advance(1000);
  expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
});

it('an announced change is not checked with a listing that was requested before it', async () => {
  await settledNode();
  takesMs = 1000;
  asked = [];
  const first = context.checkInstances?.();
  await world.clock.advance(500);
  const second = context.checkInstances?.();
  await world.during(Promise.all([first, second]));
  expect(asked).toHaveLength(2);
});

it('a long listing of an announced change that shows a loss is followed by a pause', async () => {
  const node = await settledNode();
  await world.clock.advance(15_000);
  takesMs = 31_000;
  destroy(node);
  await world.during(context.checkInstances?.() ?? Promise.resolve());
  await world.clock.advance(12_000);
  const [announced = 0, confirming = 0] = asked.slice(-2);
  expect(confirming - announced).toBeGreaterThanOrEqual(takesMs + 10_000);
});

it('a listing for launches postpones the next regular one for a limited time', async () => {
  const node = await settledNode();
  await world.clock.advance(15_000);
  observe()(latest);
  destroy(node);
  await world.clock.advance(2.5 * MINUTE_MS);
  expect(world.nodes().has(node)).toBe(false);
});
