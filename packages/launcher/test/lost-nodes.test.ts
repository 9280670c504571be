/** Tests of lost requests that have some of their nodes: they resume once there is capacity, and never deadlock. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { REQUESTS, World, pool, provider } from './support/world.js';

let world: World;
let zk: ZooKeeper;
beforeEach(async () => {
  world = new World();
  // The first launcher creates the root znodes.
  await (await world.launcher([])).stop();
  zk = world.server.connect();
});
afterEach(async () => {
  await world.during(zk.close());
  expect(await world.end()).toEqual([]);
});

/** Creates a pending request without a lock, with `having` ready nodes of a pool. */
async function lost(wanted: number, having: number, poolName = 'main', options = {}): Promise<string> {
  const labels = Array.from({ length: wanted }, () => 'small');
  const id = await world.submit(labels, options);
  await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
  for (let index = 0; index < having; index += 1) {
    const node: JsonObject = {
      state: 'ready',
      state_time: 1,
      created_time: 1,
      provider: 'demo',
      pool: poolName,
      launcher: 'gone',
      type: ['small'],
      allocated_to: id,
      az: null,
      resources: { instances: 1 },
    };
    const data = Buffer.from(JSON.stringify(node));
    await world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
  }
  return id;
}

const small = (maxServers: number, name = 'main'): JsonObject => pool(name, ['small'], { 'max-servers': maxServers });

describe('an orphaned request', () => {
  it('keeps its nodes, and gets the rest when capacity is available', async () => {
    const id = await lost(3, 2);
    const had = [...world.nodes().keys()];
    await world.launcher([provider('demo', [small(3)])]);
    expect(await world.fulfilled(id)).toEqual(expect.arrayContaining(had));
    expect(world.nodes().size).toBe(3);
  });

  it('releases its nodes when there is no capacity, so that two requests do not block each other', async () => {
    const ids = [await lost(3, 2), await lost(3, 2)];
    await world.launcher([provider('demo', [small(4)])]);
    await world.launcher([provider('demo', [small(4)])], 'launcher2');
    await world.until('one is fulfilled', () => ids.some((id) => world.stateOf(id) === 'fulfilled'));
    await world.giveBack(ids.find((id) => world.stateOf(id) === 'fulfilled')!);
    await world.until('the other is, too', () => ids.some((id) => world.stateOf(id) === 'fulfilled'));
    expect(world.nodes().size).toBeLessThanOrEqual(4);
  });

  it('releases them also when another pool uses the capacity of its provider', async () => {
    world.cloud.configure({ quota: { instances: 4, cores: Infinity, ram: Infinity } });
    const ids = [await lost(3, 2, 'a', { reuse: false }), await lost(3, 2, 'b', { reuse: false })];
    await world.launcher([provider('demo', [small(9, 'a'), small(9, 'b')])]);
    await world.until('one is fulfilled', () => ids.some((id) => world.stateOf(id) === 'fulfilled'));
    await world.giveBack(ids.find((id) => world.stateOf(id) === 'fulfilled')!);
    await world.until('the other is, too', () => ids.some((id) => world.stateOf(id) === 'fulfilled'));
  });

  it('does not resume unconfirmed launches when there is no capacity for them', async () => {
    const busy = await lost(3, 3);
    await world.during(
      world.requestor.change(`${REQUESTS}/${busy}`, { state: 'fulfilled', nodes: [...world.nodes().keys()] }),
    );
    const id = await lost(2, 2);
    const tentative = [...world.nodes()].filter(([, { allocated_to: to }]) => to === id).map(([node]) => node);
    for (const node of tentative)
      await world.during(world.requestor.change(`/nodepool/nodes/${node}`, { state: 'init' }));
    await world.launcher([provider('demo', [small(4)])]);
    await world.until('they are taken back', () => world.nodes().size === 3);
    expect(world.stateOf(id)).toBe('requested');
    expect(world.cloud.existingInstances()).toEqual([]);
    await world.giveBack(busy);
    await world.fulfilled(id);
  });
});
