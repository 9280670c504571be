/** Nodes that are slots of backing nodes: the launcher with the driver `metastatic` and a simulated cloud. */

import { describe, expect, it } from '@jest/globals';
import { silentLogger, TaskSupervisor, type Logger } from '@nodepool/core';
import { DecisionLog } from '@nodepool/status';
import { explainNode, explainRequest } from '@nodepool/status/web';
import { SharedBackingNodes } from '../src/supply/shared-backing-nodes.js';
import {
  backed,
  backingRequests,
  backings,
  CLOUD,
  meta,
  newWorld,
  places,
  start,
  world,
} from './support/backed-world.js';
import { pool, provider } from './support/world.js';

const NO_FAULTS = {
  'create-errors': 0,
  'lost-answers': 0,
  'failed-instances': 0,
  'stuck-instances': 0,
  'delete-errors': 0,
  'list-errors': 0,
  'upload-errors': 0,
  'capacity-errors': 0,
  'auth-errors': 0,
};

const OWNER = 'NodePool:metastatic:meta';
const NO_POOL = 'no pool has label large';

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Returns the ids of the nodes of a fulfilled request. */
function nodesOf(request: string): readonly string[] {
  return (world.records('/nodepool/requests').get(request)?.nodes ?? []) as string[];
}

describe('nodes on backing nodes', () => {
  it('share backing nodes: a burst launches as many as slots are missing', async () => {
    await start();
    const requests = await world.submitEach(10, ['small']);
    for (const id of requests) await world.inState(id, 'fulfilled');
    expect(backings().size).toBe(3);
    expect(new Set(places()).size).toBe(10);
    expect(backingRequests()).toEqual([]);
  });

  it('of a request for more than can ever exist decline it, once all launchers have had time to return', async () => {
    await start(
      backed(meta({ 'max-parallel-jobs': 2 }), [provider('cloud', [pool('main', ['large'], { 'max-servers': 2 })])]),
    );
    const large = await world.submit(new Array<string>(5).fill('small'));
    await world.clock.advance(60_000);
    // The request occupies no slot meanwhile.
    const small = await world.submit(new Array<string>(4).fill('small'));
    await world.fulfilled(small);
    expect(world.records('/nodepool/requests').get(large)?.state).toBe('requested');
    await world.giveBack(small);
    await world.inState(large, 'failed');
    const next = await world.submit(new Array<string>(5).fill('small'));
    await world.inState(next, 'failed');
    expect(Object.values(world.records('/nodepool/requests').get(next)?.decline_reasons ?? {})).toContain(
      'it needs 3 nodes of label large, whose pools have at most 2',
    );
  });

  it('can be more than one transaction can request', async () => {
    await start(backed(meta({ 'max-parallel-jobs': 1 })));
    const requests = await world.submitEach(250, ['small']);
    for (const id of requests) await world.inState(id, 'fulfilled');
    expect(backings().size).toBe(250);
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

describe('the views', () => {
  it('show the slots of a backing node, and the slot of a node on it', async () => {
    const decisions = new DecisionLog({ clock: world.clock });
    const launcher = await start();
    const [id = ''] = nodesOf(await world.served(['small']));
    await world.served(['small']);
    const [[backing = ''] = []] = backings();
    const sources = world.explanation(launcher, decisions);
    expect(explainNode(sources, backing)).toMatchObject({
      summary: expect.stringContaining('Slots for label small: 2 of 4 used.'),
      facts: { slots: 4, slots_used: { 0: id } },
    });
    expect(explainNode(sources, id)).toMatchObject({
      summary: expect.stringContaining(`It has slot 0 of node ${backing}.`),
      facts: { backing_node: backing, slot: 0 },
    });
  });

  it('show the request that a launch waits for', async () => {
    world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
    const launcher = await start();
    await world.submit(['small']);
    await world.until('the backing request is accepted', () =>
      backingRequests().some(({ state }) => state === 'pending'),
    );
    const [id = ''] = [...world.nodes()].flatMap(([node, { provider: name }]) => (name === 'meta' ? [node] : []));
    const decisions = new DecisionLog({ clock: world.clock });
    expect(explainNode(world.explanation(launcher, decisions), id)?.summary).toMatch(
      /in state waiting for request 100-\d+ \(pending\)/,
    );
  });
});

describe('a backing label that no pool has', () => {
  it('is named at once by the log, the explanation of the request and the problems of the pool', async () => {
    const warnings: unknown[] = [];
    const log: Logger = {
      ...silentLogger,
      warn: (message, fields) => void warnings.push([message, fields]),
      with: () => log,
      named: () => log,
    };
    world.log = log;
    const launcher = await start(backed(meta(), [provider('cloud', [pool('main', ['other'])])]));
    const id = await world.submit(['small']);
    await world.clock.advance(1000);
    expect(warnings).toContainEqual(['A backing request failed', expect.objectContaining({ reason: NO_POOL })]);
    const sources = world.explanation(launcher, new DecisionLog({ clock: world.clock }));
    expect(explainRequest(sources, id)?.summary).toMatch(
      new RegExp(`backing request \\S+ for label large failed: ${NO_POOL}`),
    );
    expect(launcher.launcher.activity()).toContainEqual(
      expect.objectContaining({ provider: 'meta', trouble: expect.objectContaining({ labels: ['small'] }) }),
    );
  });
});

describe('backing nodes', () => {
  it('are requested once, although the launcher that waits for them dies', async () => {
    world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
    const first = await start();
    const request = await world.submit(['small']);
    await world.until('a backing node is requested', () => backingRequests().length === 1);
    await first.stop();
    expect(backingRequests()).toHaveLength(1);
    await start(backed(), 'launcher2');
    await world.inState(request, 'fulfilled');
    expect(backings().size).toBe(1);
  });

  it('and their slots survive a restart of all launchers', async () => {
    const first = await start();
    await world.served(['small']);
    const taken = places();
    await first.stop();
    await start();
    await world.served(['small']);
    expect(backings().size).toBe(1);
    expect(places()).toEqual(expect.arrayContaining(taken));
    expect(new Set(places()).size).toBe(2);
  });

  it('whose record is deleted by hand get no further nodes', async () => {
    const { zk } = await start();
    await world.served(['small']);
    const [[id = ''] = []] = backings();
    for (const path of world.lockHolders().filter((each) => each.includes(id))) await world.during(zk.delete(path));
    await world.until('the backing node is deleted', () => !world.nodes().has(id));
    await world.served(['small']);
    const [[other = ''] = []] = backings();
    expect(other).not.toBe(id);
    expect(places()).toContain(`${other}/0`);
  });

  it('that are lost take a new ready node out of a request that waits for its other nodes', async () => {
    const { zk } = await start(backed(meta({ 'max-parallel-jobs': 1 })));
    const earlier = await world.served(['small']);
    const [young = ''] = nodesOf(earlier);
    const [[lost = ''] = []] = backings();
    await world.during(world.requestor.withdraw(earlier));
    world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
    const request = await world.submit(['small', 'small']);
    await world.until('the node is allocated', () => world.nodes().get(young)?.['allocated_to'] === request);
    await world.until('another backing node is launched', () =>
      backingRequests().some(({ state }) => state === 'pending'),
    );
    for (const path of world.lockHolders().filter((each) => each.includes(`/nodes/${lost}/`)))
      await world.during(zk.delete(path));
    const ids = await world.fulfilled(request);
    expect(ids).toHaveLength(2);
    expect(ids).not.toContain(young);
  });

  it('that are lost take a launched node out of a request that waits for its other nodes', async () => {
    const { zk } = await start(backed(meta({ 'max-parallel-jobs': 1 })));
    const earlier = await world.served(['small']);
    const [[lost = ''] = []] = backings();
    await world.giveBack(earlier);
    await world.until('the slot is free', () => places().length === 0);
    world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
    const request = await world.submit(['small', 'small']);
    await world.until('one node is ready', () => [...world.nodes().values()].some(({ state }) => state === 'ready'));
    for (const path of world.lockHolders().filter((each) => each.includes(`/nodes/${lost}/`)))
      await world.during(zk.delete(path));
    const ids = await world.fulfilled(request);
    expect(ids).toHaveLength(2);
    expect(places()).toHaveLength(2);
    expect(places()).not.toContain(`${lost}/0`);
  });

  it('are packed: the fullest is used first, and the others are released', async () => {
    await start();
    const requests = await world.submitEach(8, ['small']);
    for (const id of requests) await world.inState(id, 'fulfilled');
    const of = (index: number): string => {
      const [node = ''] = nodesOf(requests[index] ?? '');
      const data = world.nodes().get(node)?.['driver_data'] ?? {};
      return (data as { backing_node?: string }).backing_node ?? '';
    };
    const first = of(0);
    const other = requests.filter((_, index) => of(index) !== first);
    const returned = [requests.find((_, index) => of(index) === first) ?? '', ...other.slice(1)];
    for (const id of returned) await world.giveBack(id);
    await world.until('the slots are free', () => places().length === 4);
    await world.served(['small']);
    expect(places().filter((place) => place.startsWith(first))).toHaveLength(4);
    await world.giveBack(other[0] ?? '');
    await world.until('the other one is deleted', () => backings().size === 1);
    expect([...backings().keys()]).toEqual([first]);
  });

  it('whose launches fail are requested again, and serve the nodes that wait', async () => {
    // Every instance fails while it boots, so each backing request fails after its attempts.
    world.cloud.configure({ bootTimeMs: [1000, 1000], faults: { ...NO_FAULTS, 'failed-instances': 1 } });
    await start();
    const requests = await world.submitEach(4, ['small']);
    await world.until('a backing request has failed', () => backingRequests().some(({ state }) => state === 'failed'));
    world.cloud.configure({ bootTimeMs: [0, 0], faults: NO_FAULTS });
    for (const id of requests) await world.inState(id, 'fulfilled');
    expect(backings().size).toBe(1);
  });

  it('that no pool can ever launch make the requests fail, and leave nothing', async () => {
    await start(backed(meta(), [provider('cloud', [pool('main', ['large'], { 'max-servers': 0 })])]));
    const requests = await world.submitEach(4, ['small']);
    for (const id of requests.toReversed()) await world.inState(id, 'failed');
    await world.until('nothing is left', () => world.nodes().size === 0 && backingRequests().length === 0);
  });

  it('whose instance is lost are left by their nodes: ready ones are replaced, records of others show the loss', async () => {
    await start();
    const [used, ready] = [await world.served(['small']), await world.served(['small'])];
    const [usedId = ''] = (await world.during(world.requestor.take(used))).ids;
    const [readyId = ''] = nodesOf(ready);
    await world.during(world.requestor.withdraw(ready));
    const [[id = '', lost] = []] = backings();
    world.cloud.destroyInstance(lost?.node['external_id'] as string);
    await world.until('the ready node is replaced', () => !world.nodes().has(readyId));
    await world.until('the used node is told', () => world.nodes().get(usedId)?.['interruption'] !== undefined);
    expect(world.nodes().get(usedId)?.['interruption']).toMatchObject({ kind: 'failed' });
    const next = await world.served(['small']);
    expect(backings().size).toBe(2);
    expect(world.stateOf(next)).toBe('fulfilled');
    expect(places().filter((place) => place.startsWith(id))).toHaveLength(1);
  });

  it('of a provider that was removed are left while one of its nodes exists', async () => {
    const { launcher, zk } = await start();
    const request = await world.served(['small']);
    const [id = ''] = nodesOf(request);
    const { providers } = world.config([CLOUD]);
    await world.during(launcher.apply(world.config([], { ...backed(), providers })));
    await world.clock.advance(3_600_000);
    expect(backings().size).toBe(1);
    await world.during(zk.delete(`/nodepool/nodes/${id}/lock`));
    await world.during(zk.delete(`/nodepool/nodes/${id}`));
    await world.until('the backing node is released', () => backings().size === 0);
  });

  it('are written only in the version that was read', async () => {
    const { store } = await start();
    await world.served(['small']);
    const { clock, random, log } = world;
    const context = { store, clock, random, log, tasks: new TaskSupervisor(clock, () => undefined) };
    const shared = new SharedBackingNodes(context as never, 'meta', 'NodePool:metastatic:meta');
    await world.until('the lock is read', () => shared.held().length === 1);
    const [held] = shared.held();
    if (held === undefined) throw new Error('no backing node');
    const call = { signal: new AbortController().signal, deadline: Infinity, log };
    const text = held.node.user_data as string;
    const other = text.replace('"failed":false', '"failed":true');
    expect(await world.during(shared.update(held, other, call))).toBe(true);
    expect(await world.during(shared.update(held, text, call))).toBe(false);
    expect(await world.during(shared.release(held, call))).toBe(false);
    expect([...backings().values()].map(({ data, node }) => [data.failed, node['state']])).toEqual([[true, 'in-use']]);
    shared.close();
  });

  it('of a provider that was removed are released once none of its nodes exists', async () => {
    const { launcher } = await start();
    const request = await world.served(['small']);
    await world.giveBack(request);
    await world.until('the slot is free', () => places().length === 0);
    const other = await world.during(world.requestor.put(['large'], { requestor: 'other' }));
    await world.inState(other, 'fulfilled');
    const { providers } = world.config([CLOUD]);
    await world.during(launcher.apply(world.config([], { ...backed(), providers })));
    await world.until('the backing node is released', () => backings().size === 0);
    expect([...world.nodes().values()].map(({ state }) => state)).toEqual(['ready']);
  });

  it('with damaged data are released with their last node; look-alikes of other owners are left', async () => {
    const { store, zk } = await start();
    const request = await world.served(['small']);
    const [[id = ''] = []] = backings();
    // Nodes of other owners with the same damage: one of a requestor, one of another provider of this kind.
    const others: string[] = [];
    for (const [requestor, owner] of [
      ['zuul', 'zuul'],
      [OWNER, 'NodePool:metastatic:meta2'],
    ] as const) {
      const copy = { ...world.nodes().get(id), user_data: 'junk', requestor, external_id: null };
      const path = await world.during(
        zk
          .create('/nodepool/nodes/', json(copy), { mode: 'persistent-sequential' })
          .then(({ path: created }) => created),
      );
      const other = path.slice(path.lastIndexOf('/') + 1);
      await world.until('the record is known', () => store.nodes.get(other) !== undefined);
      await world.during(store.nodes.tryLockAll([{ id: other }], { owner }));
      others.push(other);
    }
    await world.during(zk.set(`/nodepool/nodes/${id}`, json({ ...world.nodes().get(id), user_data: 'junk' })));
    const next = await world.served(['small']);
    expect(places()).toHaveLength(2);
    expect(places()).toContain(`${id}/0`);
    expect(world.stateOf(request)).toBe('fulfilled');
    await world.giveBack(request);
    await world.until('the backing node is deleted', () => !world.nodes().has(id));
    expect(world.stateOf(next)).toBe('fulfilled');
    expect(others.map((other) => world.nodes().get(other)?.['state'])).toEqual(['in-use', 'in-use']);
    for (const other of others) {
      await world.during(zk.delete(world.lockHolders().find((path) => path.includes(other)) ?? ''));
    }
    await world.until('the others are deleted', () => others.every((other) => !world.nodes().has(other)));
  });

  it('with damaged data are released although their provider was removed', async () => {
    const { launcher, zk } = await start();
    await world.giveBack(await world.served(['small']));
    await world.until('the slot is free', () => places().length === 0);
    const [[id = ''] = []] = backings();
    const { providers } = world.config([CLOUD]);
    await world.during(launcher.apply(world.config([], { ...backed(), providers })));
    await world.during(zk.set(`/nodepool/nodes/${id}`, json({ ...world.nodes().get(id), user_data: null })));
    await world.until('the backing node is deleted', () => !world.nodes().has(id));
  });

  it('whose lock cannot be read are not lost, and delay no other work', async () => {
    const { store } = await start();
    await world.served(['small']);
    const [[id = ''] = []] = backings();
    let isReadable = false;
    const nodes = Object.create(store.nodes, {
      adopt: {
        value: (...args: Parameters<typeof store.nodes.adopt>) =>
          isReadable ? store.nodes.adopt(...args) : Promise.reject(new Error('the lock is unreadable')),
      },
    }) as typeof store.nodes;
    const { clock, random, log } = world;
    const context = {
      store: Object.create(store, { nodes: { value: nodes } }) as typeof store,
      ...{ clock, random, log, tasks: new TaskSupervisor(clock, () => undefined) },
      decisions: new DecisionLog({ clock }),
    };
    const shared = new SharedBackingNodes(context as never, 'meta', OWNER);
    const call = { signal: new AbortController().signal, deadline: Infinity, log };
    await world.during(shared.refresh(call));
    expect(shared.held()).toMatchObject([
      { node: { id }, lost: undefined, unverified: expect.stringContaining('lock') },
    ]);
    const [held] = shared.held();
    if (held === undefined) throw new Error('no backing node');
    expect(await world.during(shared.release(held, call))).toBe(false);
    let isAsked = false;
    const decide = (): { create: []; remove: [] } => {
      isAsked = true;
      return { create: [], remove: [] };
    };
    await world.during(shared.plan(decide, call));
    expect(isAsked).toBe(true);
    isReadable = true;
    await world.until('the lock is read', () => shared.held()[0]?.unverified === undefined);
    expect(await world.during(shared.update(shared.held()[0] ?? held, held.node.user_data, call))).toBe(true);
    shared.close();
  });
});
