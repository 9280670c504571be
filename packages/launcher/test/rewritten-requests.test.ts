/** Tests that launchers write a request only when its state changes, whatever happens to the nodes that it had. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { REQUESTS, World, pool, provider } from './support/world.js';

let world: World;
let zk: ZooKeeper;
beforeEach(async () => {
  world = new World(1, () => 2);
  // The first launcher creates the root znodes.
  await (await world.launcher([])).stop();
  zk = world.server.connect();
});
afterEach(async () => {
  await world.during(zk.close());
  expect(await world.end()).toEqual([]);
});

/** Creates the record of a node. */
async function create(more: JsonObject): Promise<string> {
  const node = { provider: 'demo', pool: 'main', type: ['small'], resources: { instances: 1 }, external_id: 'i-1' };
  const data = Buffer.from(JSON.stringify({ ...node, state_time: 1, created_time: 1, ...more }));
  const { path } = await world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
  return path;
}

/** Locks a node as another program does. Resolves with a function that unlocks it. */
async function lock(node: string): Promise<() => Promise<void>> {
  await world.during(zk.create(`${node}/lock`));
  const contender = `${node}/lock/${'a'.repeat(32)}__lock__0000000000`;
  await world.during(zk.create(contender, Buffer.from('other'), { mode: 'ephemeral' }));
  return () => world.during(zk.delete(contender));
}

/** Number of writes of the request. */
async function writesOf(id: string): Promise<number> {
  return (await world.during(zk.exists(`${REQUESTS}/${id}`)))?.version ?? 0;
}

const full = provider('demo', [pool('main', ['small'], { 'max-servers': 1 })]);

describe('a request that waits for capacity is not written', () => {
  it.each(['deleting', 'failed', 'aborted', 'deleted', 'used', 'in-use'])(
    'while the deletion of a node in state %s, which it had, does not end',
    async (state) => {
      const id = await world.submit(['small']);
      await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
      const node = await create({ state, allocated_to: id });
      // Another program deletes the node, and does not finish.
      const release = await lock(node);
      await world.launcher([full]);
      const before = await writesOf(id);
      await world.clock.advance(200_000);
      expect((await writesOf(id)) - before).toBeLessThanOrEqual(2);
      await release();
      await world.fulfilled(id);
    },
  );

  it('while another pool, which nothing serves, has a ready node of it', async () => {
    const id = await world.submit(['small']);
    await create({ state: 'ready', allocated_to: id, pool: 'former' });
    await create({ state: 'hold', allocated_to: null });
    await world.launcher([full]);
    const before = await writesOf(id);
    await world.clock.advance(200_000);
    expect((await writesOf(id)) - before).toBeLessThanOrEqual(2);
  });

  it('while another program holds the lock of a ready node of it', async () => {
    const id = await world.submit(['small', 'small']);
    const node = await create({ state: 'ready', allocated_to: id, pool: 'former' });
    const release = await lock(node);
    await create({ state: 'hold', allocated_to: null });
    await world.launcher([provider('demo', [pool('main', ['small'], { 'max-servers': 2 })])]);
    const before = await writesOf(id);
    await world.clock.advance(200_000);
    expect((await writesOf(id)) - before).toBeLessThanOrEqual(2);
    await release();
  });
});

it('a request of another launcher, whose node it deletes, is served once there is capacity', async () => {
  const id = await world.submit(['small']);
  await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
  await create({ state: 'deleting', allocated_to: id, external_id: null });
  await world.launcher([full]);
  await world.fulfilled(id);
  expect(await writesOf(id)).toBeLessThanOrEqual(5);
});
