/** Tests of ready nodes that no request needs, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { NodepoolConfig, TopLabelConfig } from '@nodepool/config';
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

  it('is deleted together with all others', async () => {
    await world.launcher([demo()], 'launcher1', idleFor());
    const ids = await world.submitEach(6, ['small']);
    for (const id of ids) await world.fulfilled(id);
    for (const id of ids) await world.during(world.requestor.withdraw(id));
    await world.clock.advance(IDLE_MS + 5000);
    expect(world.nodes().size).toBe(0);
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

describe('the ages of a label', () => {
  const HOUR_MS = 3_600_000;
  const label = (more: Partial<TopLabelConfig>): Partial<NodepoolConfig> => {
    const small = { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxIdleMs: Infinity, maxWaitMs: Infinity };
    return { labels: new Map([['small', { ...small, ...more }]]) };
  };
  const ready = (): string[] => [...world.nodes()].filter(([, node]) => isReady(node)).map(([id]) => id);
  const createdAt = (node: string): number => Number(world.nodes().get(node)?.created_time) * 1000;

  /** Follows the number of ready nodes for a while. Resolves with the lowest one, and the age of the oldest node. */
  async function follow(ms: number): Promise<{ readonly lowest: number; readonly oldestMs: number }> {
    let lowest = Infinity;
    let oldestMs = 0;
    const stop = world.server.onCommit(() => {
      lowest = Math.min(lowest, ready().length);
      for (const node of ready()) oldestMs = Math.max(oldestMs, world.clock.now() - createdAt(node));
    });
    await world.clock.advance(ms);
    stop();
    return { lowest, oldestMs };
  }

  it.each([
    ['max-age', { maxAgeMs: HOUR_MS }],
    ['max-ready-age', { maxReadyAgeMs: HOUR_MS }],
  ])('replace nodes before %s, and the label never has fewer than min-ready', async (_key, ages) => {
    world.cloud.configure({ bootTimeMs: [120_000, 120_000] });
    const more = label({ minReady: 2, maxIdleMs: 600_000, ...ages });
    await world.launcher([demo()], 'launcher1', more);
    await world.launcher([demo()], 'launcher2', more);
    await world.until('two are ready', () => ready().length === 2);
    const first = ready();
    const { lowest, oldestMs } = await follow(5 * HOUR_MS);
    expect(lowest).toBe(2);
    // A launch takes two minutes of the age, which begins at its creation.
    expect(oldestMs).toBeLessThanOrEqual(HOUR_MS + 130_000);
    expect(ready().filter((node) => first.includes(node))).toEqual([]);
    expect(ready()).toHaveLength(2);
    expect(world.cloud.existingInstances().length).toBeLessThanOrEqual(4);
  });

  it('delete an unneeded node at its max-age', async () => {
    await world.launcher([demo()], 'launcher1', label({ maxAgeMs: HOUR_MS }));
    const node = await freeNode('small');
    await world.clock.advance(createdAt(node) + HOUR_MS - 1000 - world.clock.now());
    expect(ready()).toEqual([node]);
    await world.clock.advance(60_000);
    expect(world.nodes().has(node)).toBe(false);
  });

  it('keep a node for the minimum retention, whatever the other keys say', async () => {
    const ages = { maxIdleMs: 60_000, maxAgeMs: 120_000, maxReadyAgeMs: 120_000, minRetentionMs: HOUR_MS };
    await world.launcher([demo()], 'launcher1', label(ages));
    const node = await freeNode('small');
    await world.clock.advance(createdAt(node) + HOUR_MS - 1000 - world.clock.now());
    expect(ready()).toEqual([node]);
    await world.clock.advance(60_000);
    expect(world.nodes().has(node)).toBe(false);
  });

  it('keep an old node while its replacement cannot be launched, and lose one at most', async () => {
    await world.launcher([demo()], 'launcher1', label({ minReady: 3, maxAgeMs: HOUR_MS }));
    await world.until('three are ready', () => ready().length === 3);
    const first = ready();
    world.cloud.configure({ quota: { instances: 3, cores: Infinity, ram: Infinity } });
    const { lowest } = await follow(HOUR_MS);
    expect([lowest, ready().sort()]).toEqual([3, first.sort()]);
    // The full cloud has capacity for replacements one by one.
    expect((await follow(4 * HOUR_MS)).lowest).toBe(2);
    expect(ready().filter((node) => first.includes(node))).toEqual([]);
    expect(ready().length).toBeGreaterThanOrEqual(2);
  });

  it('of a changed configuration apply at once', async () => {
    const { launcher } = await world.launcher([demo()], 'launcher1', label({}));
    const node = await freeNode('small');
    await world.clock.advance(2 * HOUR_MS);
    expect(world.nodes().has(node)).toBe(true);
    await world.during(launcher.apply(world.config([demo()], label({ maxAgeMs: HOUR_MS }))));
    const began = world.clock.now();
    await world.until('it is deleted', () => !world.nodes().has(node));
    expect(world.clock.now() - began).toBeLessThan(30_000);
  });
});
