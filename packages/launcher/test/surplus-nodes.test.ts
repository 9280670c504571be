/** Tests of ready nodes that no request needs, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { pool, provider } from './support/world.js';
import { NODES, world, demo, freeNode } from './support/cleanup-world.js';

const IDLE_MS = 600_000;

function idleFor(minReady = 0): Partial<NodepoolConfig> {
  const label = { name: 'small', minReady, maxReadyAgeMs: Infinity, maxIdleMs: IDLE_MS, maxWaitMs: Infinity };
  return { labels: new Map([['small', label]]) };
}

describe('a ready node that no request needs', () => {
  it('is deleted after max-idle-time, by one of several launchers, and nodes of other labels stay', async () => {
    await world.launcher([demo()], 'launcher1', idleFor());
    await world.launcher([demo()], 'launcher2', idleFor());
    const large = await freeNode('large');
    const small = await freeNode('small');
    const freed = world.clock.now();
    await world.until('it is deleted', () => !world.nodes().has(small));
    expect(world.clock.now() - freed).toBeGreaterThanOrEqual(IDLE_MS);
    await world.clock.advance(2 * IDLE_MS);
    expect([...world.nodes().keys()]).toEqual([large]);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  it('is deleted although its requestor died before it locked the node', async () => {
    await world.launcher([demo()], 'launcher1', idleFor());
    const id = await world.submit(['small']);
    const [node = ''] = await world.fulfilled(id);
    await world.clock.advance(2 * IDLE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: id });
    // ZooKeeper deletes the request with the session of the requestor.
    await world.during(world.requestor.withdraw(id));
    const freed = world.clock.now();
    await world.until('it is deleted', () => !world.nodes().has(node));
    expect(world.clock.now() - freed).toBeGreaterThanOrEqual(IDLE_MS);
  });

  it('goes to a request within that time', async () => {
    await world.launcher([demo()], 'launcher1', idleFor());
    const node = await freeNode('small');
    await world.clock.advance(IDLE_MS - 1000);
    const id = await world.submit(['small']);
    expect(await world.fulfilled(id)).toEqual([node]);
    await world.clock.advance(2 * IDLE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: id });
  });

  it('stays while its label needs it for min-ready; the oldest surplus nodes are deleted', async () => {
    await world.launcher([demo()], 'launcher1', idleFor(2));
    await world.launcher([demo()], 'launcher2', idleFor(2));
    await world.until('there are two', () => [...world.nodes().values()].filter(isReady).length === 2);
    const old = [...world.nodes().keys()];
    const id = await world.submit(['small', 'small', 'small'], { reuse: false });
    const added = await world.fulfilled(id);
    await world.during(world.requestor.withdraw(id));
    await world.clock.advance(3 * IDLE_MS);
    expect([...world.nodes().values()].filter(isReady)).toHaveLength(2);
    expect([...world.nodes().keys()].filter((node) => old.includes(node))).toEqual([]);
    expect([...world.nodes().keys()].every((node) => added.includes(node))).toBe(true);
  });

  it('stays while another of its labels needs it for min-ready', async () => {
    const large = { name: 'large', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity };
    const labels = new Map([...(idleFor().labels ?? []), ['large', large] as const]);
    const { launcher } = await world.launcher([demo()], 'launcher1', { labels });
    await world.until('there is one', () => [...world.nodes().values()].some(isReady));
    const [node = ''] = world.nodes().keys();
    await world.during(world.requestor.change(`${NODES}/${node}`, { type: ['large', 'small'] }));
    await world.clock.advance(3 * IDLE_MS);
    expect([...world.nodes().keys()]).toEqual([node]);
    const withoutMinReady = new Map([...labels, ['large', { ...large, minReady: 0 }] as const]);
    await world.during(launcher.apply(world.config([demo()], { labels: withoutMinReady })));
    await world.until('it is deleted', () => world.nodes().size === 0);
  });

  it('stays while another program has its lock', async () => {
    await world.launcher([demo()], 'launcher1', idleFor());
    const node = await freeNode('small');
    const lock = `${NODES}/${node}/lock`;
    const client = world.server.connect();
    await world.during(client.create(`${lock}/a__lock__0000000000`, Buffer.alloc(0), { mode: 'ephemeral' }));
    await world.clock.advance(2 * IDLE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    await world.during(client.close());
    await world.until('it is deleted', () => !world.nodes().has(node));
  });

  it('stays for ever with a limit of 0', async () => {
    const label = { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxIdleMs: Infinity, maxWaitMs: Infinity };
    await world.launcher([provider('demo', [pool('main', ['small'])])], 'launcher1', {
      labels: new Map([['small', label]]),
    });
    const node = await freeNode('small');
    await world.clock.advance(20 * IDLE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
  });
});

function isReady({ state, allocated_to: request }: JsonObject): boolean {
  return state === 'ready' && request === null;
}
