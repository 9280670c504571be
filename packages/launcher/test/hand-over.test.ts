/** Tests of ready nodes that several launchers allocate at the same time to requests of a tenant with a limit. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted, type JsonObject } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider, type RunningLauncher } from './support/world.js';

const LABELS = ['small', 'large'] as const;

type Label = (typeof LABELS)[number];

/** A request for a ready node (`reuse`) or for a new one. */
interface RequestPlan {
  readonly label: Label;
  readonly reuse: boolean;
}

let world: World;
/** Largest number of nodes of tenant `red` above its limit that were launched or allocated to fulfilled requests. */
let over: number;
let launchers: RunningLauncher[];
beforeEach(async () => {
  // The latency is the same for all launchers: launchers that collide and retry at the same time collide again.
  world = new World(1, () => 5);
  over = 0;
  launchers = [];
  for (const label of LABELS) {
    const labels = new Map([[label, { name: label, minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
    const tenantLimits = new Map([['red', { instances: 1 }]]);
    launchers.push(await world.launcher([provider(label, [pool('main', [label])])], label, { labels, tenantLimits }));
  }
  const isFree = (node: JsonObject): boolean => node.state === 'ready' && node.allocated_to === null;
  await world.until('a node of each label is free', () => countOf(isFree) === LABELS.length);
  await world.clock.advance(10_000);
  world.server.onCommit(() => {
    const served = new Set<unknown>();
    for (const [id, { state }] of world.records(REQUESTS)) if (state === 'fulfilled') served.add(id);
    const isRed = (node: JsonObject): boolean => node.tenant_name === 'red';
    const isBegun = (node: JsonObject): boolean => node.state === 'building' || node.state === 'in-use';
    const count = countOf((node) => isRed(node) && (isBegun(node) || served.has(node.allocated_to)));
    over = Math.max(over, count - 1);
  });
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

function countOf(counts: (node: JsonObject) => boolean): number {
  return [...world.nodes().values()].filter(counts).length;
}

const handOver = (label: Label): RequestPlan => ({ label, reuse: true });
const launch = (label: Label): RequestPlan => ({ label, reuse: false });

/** Submits the requests one after another, at intervals shorter than the latency between launchers. */
async function submit(requests: readonly RequestPlan[], apartMs = 0): Promise<string[]> {
  const submitted: Promise<string>[] = [];
  for (const { label, reuse } of requests) {
    submitted.push(world.requestor.submit([label], { tenant: 'red', reuse }));
    if (apartMs > 0) await world.clock.advance(apartMs);
  }
  return world.during(Promise.all(submitted));
}

/** Takes and returns the nodes of each request until all requests have been fulfilled. */
async function serveOneByOne(ids: readonly string[]): Promise<void> {
  const waiting = new Set(ids);
  while (waiting.size > 0) {
    await world.until('one is served', () => [...waiting].some((id) => world.stateOf(id) === 'fulfilled'));
    for (const id of waiting) {
      if (world.stateOf(id) !== 'fulfilled') continue;
      waiting.delete(id);
      await world.giveBack(id);
    }
  }
}

it('two handovers that together exceed the limit of the tenant are served sequentially', async () => {
  await serveOneByOne(await submit([handOver('small'), handOver('large')]));
  expect(over).toBe(0);
});

it('a handover and a launch that together exceed the limit of the tenant are served sequentially', async () => {
  await serveOneByOne(await submit([handOver('small'), launch('large')]));
  expect(over).toBe(0);
});

it('a launch counts a handover that was written just before it', async () => {
  await serveOneByOne(await submit([handOver('small'), launch('large')], 2));
  expect(over).toBe(0);
});

it('a handover that a lost session left unconfirmed is confirmed when the request is accepted again', async () => {
  const [small] = launchers;
  let expired = false;
  world.server.onCommit(() => {
    const isTaken = countOf(({ provider: its, tenant_name: tenant }) => tenant === 'red' && its === 'small') > 0;
    if (!isTaken || expired || small === undefined) return;
    expired = true;
    world.server.expireSession(small.zk);
  });
  const [launched = '', lost = ''] = await submit([launch('large'), handOver('small')], 2);
  await world.fulfilled(launched);
  const taken = await world.during(world.requestor.take(launched));
  await world.clock.advance(120_000);
  expect([expired, world.stateOf(lost), over]).toEqual([true, 'requested', 0]);
  await world.during(world.requestor.giveBack(taken));
  await serveOneByOne([lost]);
  expect(over).toBe(0);
});

it('a handover is not declined if the stop of its provider interrupts the confirmation', async () => {
  await world.end();
  world = new World();
  const labels = new Map([['small', { name: 'small', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
  const hanging = faultyDriver(world.cloud, (target) => ({
    getQuotaForLabel: (pool, label, ...rest) =>
      pool === 'starting'
        ? new Promise(() => undefined)
        : (target.getQuotaForLabel?.(pool, label, ...rest) ?? Promise.reject(new Error('unknown'))),
  }));
  const pools = [pool('main', ['small']), pool('starting', ['large'])];
  const tenantLimits = new Map([['red', { instances: 1 }]]);
  const config = { ...hanging, labels, tenantLimits };
  const { store, launcher } = await world.launcher([provider('demo', pools)], 'launcher1', config);
  await world.until('a node is ready', () => countOf(({ state }) => state === 'ready') === 1);
  let isReading = false;
  Object.defineProperty(store, 'complete', { get: () => !isReading });
  store.ready = async ({ signal } = {}) => {
    if (signal !== undefined) await untilAborted(new Promise<void>(() => undefined), signal);
  };
  const read = store.nodes.read.bind(store.nodes);
  store.nodes.read = (...args) => {
    isReading = true;
    return read(...args);
  };
  const [id = ''] = await submit([handOver('small')]);
  await world.until('the handover is being confirmed', () => isReading);
  await world.clock.advance(1000);
  await world.during(launcher.stop());
  expect(world.records(REQUESTS).get(id)).toMatchObject({ state: 'pending' });
  expect(world.records(REQUESTS).get(id)).not.toHaveProperty('declined_by');
});

describe('a ready node that is freed again', () => {
  const free = (): JsonObject[] =>
    [...world.nodes().values()].filter(({ state, allocated_to: request }) => state === 'ready' && request === null);

  it('has its previous tenant when the handover was withdrawn before its confirmation', async () => {
    let claimed: string[] = [];
    world.server.onCommit(() => {
      const pending = [...world.records(REQUESTS)].filter(([, { state }]) => state === 'pending');
      if (pending.length < 2 || claimed.length > 0) return;
      claimed = pending.map(([id]) => id);
      for (const id of claimed) void world.requestor.withdraw(id);
    });
    await submit([handOver('small'), handOver('large')]);
    await world.until('both are free again', () => claimed.length === 2 && free().length === 2);
    for (const node of free()) expect(node).toMatchObject({ tenant_name: null, requestor: 'NodePool:min-ready' });
  });

  it.each([
    ['keeps the tenant of a deleted request', false, 'red'],
    ['has no tenant if it exceeds the limit', true, null],
  ])('%s', async (_, isExceeded, tenant) => {
    if (isExceeded) {
      const [launched = ''] = await submit([launch('large')]);
      await world.fulfilled(launched);
      await world.during(world.requestor.take(launched));
    }
    const [id] =
      [...world.nodes()].find(([, { provider: its, allocated_to: of }]) => its === 'small' && of === null) ?? [];
    const claim = { allocated_to: '200-0000099999', tenant_name: 'red', requestor: 'zuul' };
    await world.during(world.requestor.change(`/nodepool/nodes/${id}`, claim));
    await world.until('it is free again', () => world.nodes().get(id ?? '')?.allocated_to === null);
    expect(world.nodes().get(id ?? '')).toMatchObject({ state: 'ready', tenant_name: tenant, requestor: 'zuul' });
  });
});
