/** Nodes that are slots of backing nodes: the launcher with the driver `metastatic` and a simulated cloud. */

import { describe, expect, it } from '@jest/globals';
import { backed, backingRequests, backings, meta, newWorld, places, start, world } from './support/backed-world.js';

describe('nodes on backing nodes', () => {
  it('share backing nodes: a burst launches as many as slots are missing', async () => {
    await start();
    const requests = await world.submitEach(10, ['small']);
    for (const id of requests) await world.inState(id, 'fulfilled');
    expect(backings().size).toBe(3);
    expect(new Set(places()).size).toBe(10);
    expect(backingRequests()).toEqual([]);
  });

  it('have the facts of the backing node, in the form that the Python Nodepool writes', async () => {
    await start(backed(meta({}, { 'node-attributes': { site: 'berlin' } })));
    const [id = ''] = await world.fulfilled(await world.submit(['small']));
    const node = world.nodes().get(id);
    const [[backingId, backing] = ['', undefined]] = backings();
    expect(node).toMatchObject({
      external_id: id,
      slot: 0,
      driver_data: {
        backing_node: backingId,
        slot: 0,
        node: id,
        metadata: { nodepool_node_id: id, nodepool_provider_name: 'meta', nodepool_pool_name: 'main' },
      },
      interface_ip: backing?.node['interface_ip'],
      username: 'root',
      attributes: { site: 'berlin' },
    });
    expect(backing?.node).toMatchObject({ state: 'in-use', provider: 'cloud' });
    expect(backing?.data).toMatchObject({
      owner: 'NodePool:metastatic:meta',
      label: 'small',
      slots: 4,
      failed: false,
    });
    expect(world.lockHolders().filter((path) => path.includes(backingId))).toHaveLength(1);
  });

  it('return their slot, and the backing node is deleted after the grace-time', async () => {
    await start();
    const first = await world.served(['small']);
    await world.giveBack(first);
    await world.until('the slot is free', () => [...backings().values()].every(({ data }) => data.used.size === 0));
    expect(backings().size).toBe(1);
    const second = await world.served(['small']);
    expect(backings().size).toBe(1);
    await world.giveBack(second);
    await world.until('the backing node is deleted', () => world.nodes().size === 0);
    expect(world.lockHolders()).toEqual([]);
  });

  it('can be ready before a request asks for them', async () => {
    const label = { name: 'small', minReady: 3, maxReadyAgeMs: Infinity, maxIdleMs: Infinity };
    await start({ ...backed(), labels: new Map([['small', label as never]]) });
    await world.until('three nodes are ready', () => places().length === 3);
    expect(backings().size).toBe(1);
  });

  it('of several launchers never share a slot, and their launchers request no surplus', async () => {
    for (const seed of [1, 2, 3]) {
      newWorld(seed, 20);
      await start();
      await start(backed(), 'launcher2');
      const requests = await world.submitEach(16, ['small']);
      for (const id of requests) await world.inState(id, 'fulfilled');
      expect(new Set(places()).size).toBe(16);
      expect(backings().size).toBe(4);
      if (seed < 3) expect(await world.end()).toEqual([]);
    }
  });
});
