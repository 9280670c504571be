/** Tests of ready nodes that lose their instance, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import { externalIdKey, sleep, TransientError, type Instance, type Provider } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { MINUTE_MS, demo, exists, freeNode, heldNode, warnings, world } from './support/cleanup-world.js';
import { instanceOf, listing, ready, REPLACED_MS, said, settledNodes, SETTLED_MS } from './support/lost-instances.js';

describe('a ready node', () => {
  it('whose instance was deleted by another program is deleted, and min-ready launches another', async () => {
    const labels = new Map([['small', { name: 'small', minReady: 2, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
    await world.launcher([demo()], 'launcher1', { labels });
    await world.until('two nodes are ready', () => ready().length === 2);
    await world.clock.advance(SETTLED_MS);
    const [lost = '', kept = ''] = ready();
    world.cloud.destroyInstance(instanceOf(lost));
    await world.clock.advance(REPLACED_MS);
    expect(ready()).toHaveLength(2);
    expect(ready()).toContain(kept);
    expect(world.nodes().has(lost)).toBe(false);
    expect(ready().map(instanceOf).every(exists)).toBe(true);
    expect(said('A ready node has lost its instance; deleting it')).toMatchObject([
      { node_id: lost, provider: 'demo' },
    ]);
  });

  it('is checked with the listings of the search for leaked resources, so that the cloud has one call per minute', async () => {
    const calls: string[] = [];
    const counting = faultyDriver(world.cloud, (provider: Provider) => ({
      start: (context) =>
        provider.start({
          ...context,
          onApiCall: (call) => {
            calls.push(`${call.service} ${call.operation}`);
            context.onApiCall(call);
          },
        }),
    }));
    await world.launcher([demo()], 'launcher1', counting);
    await settledNodes(1);
    await world.clock.advance(MINUTE_MS);
    calls.length = 0;
    await world.clock.advance(10 * MINUTE_MS);
    const listings = calls.filter((operation) => operation === 'instances list');
    expect(listings.length).toBeGreaterThanOrEqual(9);
    expect(listings.length).toBeLessThanOrEqual(11);
  });

  it('whose instance has failed is deleted after one listing, with its instance', async () => {
    await world.launcher([demo()]);
    const [node = ''] = await settledNodes(1);
    const instance = instanceOf(node);
    world.cloud.breakInstance(instance);
    await world.clock.advance(1.5 * MINUTE_MS);
    expect(world.nodes().has(node)).toBe(false);
    expect(exists(instance)).toBe(false);
  });

  it('is kept if only one listing lacks its instance', async () => {
    let lacks = false;
    await world.launcher(
      [demo()],
      'launcher1',
      listing((list) => (lacks ? ((lacks = false), []) : list)),
    );
    const [node = ''] = await settledNodes(1);
    lacks = true;
    await world.clock.advance(10 * MINUTE_MS);
    expect(lacks).toBe(false);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    expect(said('A ready node can be handed out again')).toMatchObject([{ node_id: node }]);
  });

  it('is kept while listings fail', async () => {
    let fails = false;
    const failing = (list: readonly Instance[]): readonly Instance[] => {
      if (fails) throw new TransientError('the second page is missing');
      return list;
    };
    await world.launcher([demo()], 'launcher1', listing(failing));
    const [node = ''] = await settledNodes(1);
    fails = true;
    world.cloud.destroyInstance(instanceOf(node));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
  });

  it('is not handed out once a listing for a launch lacks its instance, and is deleted when that is confirmed', async () => {
    let others = 0;
    const counted = (list: readonly Instance[]): readonly Instance[] => {
      others += 1;
      return list;
    };
    await world.launcher([demo()], 'launcher1', listing(counted));
    const [lost = '', kept = ''] = await settledNodes(2);
    others = 0;
    await world.until('the launcher has just listed the instances', () => others > 0);
    await world.clock.advance(33_000);
    world.cloud.destroyInstance(instanceOf(lost));
    others = 0;
    world.cloud.configure({ bootTimeMs: [5000, 5000] });
    await world.fulfilled(await world.submit(['large']));
    expect(others).toBe(0);
    expect(said('A ready node is not handed out')).toMatchObject([{ node_id: lost }]);
    const nodes = await world.fulfilled(await world.submit(['small', 'small']));
    expect(nodes).toContain(kept);
    expect(nodes).not.toContain(lost);
    // The next listing for the checks alone would be a minute later.
    await world.clock.advance(25_000);
    expect(world.nodes().has(lost)).toBe(false);
  });

  it.each(['missing', 'stopped'])(
    'is kept if its instance is %s, runs while the records are not complete, and is so again later',
    async (kind) => {
      let shows = false;
      let shown = 0;
      let check = (): Promise<void> => Promise.reject(new Error('not started'));
      const flapping = faultyDriver(world.cloud, (provider) => ({
        start: (context) => {
          check = context.checkInstances ?? check;
          return provider.start(context);
        },
        listNodes: async (call) => {
          const all = await provider.listNodes(call);
          if (!shows) return all;
          shown += 1;
          return kind === 'missing' ? [] : all.map((each) => ({ ...each, ready: false }));
        },
      }));
      const { zk } = await world.launcher([demo()], 'launcher1', flapping);
      const { ids: used } = await world.during(world.requestor.take(await world.served(['large'])));
      const [node = ''] = await settledNodes(1);
      const showOnce = async (): Promise<void> => {
        shows = true;
        shown = 0;
        await world.until('a list shows it', () => shown > 0);
        shows = false;
      };
      await showOnce();
      world.server.partition(zk);
      await world.clock.advance(5 * MINUTE_MS);
      await expect(world.during(check())).rejects.toThrow('not complete');
      world.server.heal(zk);
      await showOnce();
      await world.clock.advance(1000);
      expect(used.map((id) => world.nodes().get(id)?.interruption ?? null)).toEqual([null]);
      await world.clock.advance(MINUTE_MS);
      expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    },
  );

  it('is kept when it becomes free although a listing from before it was ready shows a failure', async () => {
    let fails = false;
    let check = (): Promise<void> => Promise.reject(new Error('not started'));
    const failing = faultyDriver(world.cloud, (provider) => ({
      start: (context) => {
        check = context.checkInstances ?? check;
        return provider.start(context);
      },
      listNodes: async (call) => {
        const all = await provider.listNodes(call);
        return fails ? all.map((each) => ({ ...each, tags: {}, deleted: true })) : all;
      },
    }));
    await world.launcher([demo()], 'launcher1', failing);
    await world.clock.advance(15_000);
    world.cloud.configure({ bootTimeMs: [5000, 5000] });
    const id = await world.submit(['small']);
    await world.until('its instance boots', () => world.cloud.existingInstances().length === 1);
    fails = true;
    await world.during(check());
    fails = false;
    const [node = ''] = await world.fulfilled(id);
    await world.during(world.requestor.withdraw(id));
    await world.until('it is free', () => world.nodes().get(node)?.allocated_to !== id);
    await world.clock.advance(1000);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
  });

  it('is checked with pauses between the listings, although each takes long and lacks another instance', async () => {
    const calls: { readonly begin: number; readonly end: number }[] = [];
    let nodes: string[] = [];
    const slow = faultyDriver(world.cloud, (provider) => ({
      listNodes: async (call) => {
        const begin = world.clock.monotonic();
        const all = await provider.listNodes(call);
        if (nodes.length === 0) return all;
        await sleep(world.clock, 40_000, call.signal);
        const hidden = instanceOf(nodes[calls.length % nodes.length] ?? '');
        calls.push({ begin, end: world.clock.monotonic() });
        return all.filter(({ externalId }) => externalId !== hidden);
      },
      cleanupLeakedResources: () => Promise.resolve(),
    }));
    await world.launcher([demo()], 'launcher1', slow);
    nodes = await settledNodes(3);
    await world.clock.advance(10 * MINUTE_MS);
    expect(calls.length).toBeGreaterThan(5);
    const pauses = calls.slice(1).map(({ begin }, index) => begin - (calls[index]?.end ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10_000);
  });

  it('is kept while the driver returns nonsense', async () => {
    let isNonsense = false;
    const nonsense = JSON.parse('[{"tags": {}}]') as readonly Instance[];
    await world.launcher(
      [demo()],
      'launcher1',
      listing((list) => (isNonsense ? nonsense : list)),
    );
    const [node = ''] = await settledNodes(1);
    isNonsense = true;
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    expect(said('A ready node is not handed out')).toEqual([]);
  });

  it('is kept while listings lack new instances', async () => {
    let lacking = 0;
    const late = (list: readonly Instance[]): readonly Instance[] => {
      if (list.length === 0 || world.clock.monotonic() > 2 * MINUTE_MS) return list;
      lacking += 1;
      return [];
    };
    await world.launcher([demo()], 'launcher1', listing(late));
    await world.clock.advance(5000);
    const node = await freeNode();
    await world.until('a list lacks it', () => lacking > 0);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    expect(said('A ready node is not handed out')).toEqual([]);
  });

  it('whose instance is stopped is not handed out, and is deleted only if it stays stopped', async () => {
    let stopped = '';
    const list = (all: readonly Instance[]): readonly Instance[] =>
      all.map((each) => (each.externalId === stopped ? { ...each, ready: false } : each));
    await world.launcher([demo()], 'launcher1', listing(list));
    const [node = ''] = await settledNodes(1);
    stopped = instanceOf(node);
    await world.clock.advance(2 * MINUTE_MS);
    expect(await world.fulfilled(await world.submit(['small']))).not.toContain(node);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
    await world.clock.advance(6 * MINUTE_MS);
    expect(world.nodes().has(node)).toBe(false);
  });

  it('whose instance was stopped for minutes is kept if only one listing lacks it then', async () => {
    let stopped = '';
    let lacks = false;
    const list = (all: readonly Instance[]): readonly Instance[] => {
      if (lacks) {
        lacks = false;
        return [];
      }
      return all.map((each) => (each.externalId === stopped ? { ...each, ready: false } : each));
    };
    await world.launcher([demo()], 'launcher1', listing(list));
    const [node = ''] = await settledNodes(1);
    stopped = instanceOf(node);
    await world.clock.advance(3 * MINUTE_MS);
    lacks = true;
    await world.until('a list lacks it', () => !lacks);
    stopped = '';
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready' });
  });

  it.each([
    ['node', { nodepool_node_id: '0000009999' }],
    ['provider', { nodepool_provider_name: 'another' }],
  ])('whose instance id belongs to another %s is deleted without that instance', async (_what, ofAnother) => {
    const owners = new Map<string, Readonly<Record<string, string>>>();
    const list = (all: readonly Instance[]): readonly Instance[] =>
      all.map((each) => ({ ...each, tags: { ...each.tags, ...owners.get(externalIdKey(each.externalId)) } }));
    await world.launcher([demo()], 'launcher1', listing(list));
    const [node = ''] = await settledNodes(1);
    const instance = instanceOf(node);
    owners.set(instance, ofAnother);
    const deleted: string[] = [];
    const deleteInstance = world.cloud.deleteInstance.bind(world.cloud);
    world.cloud.deleteInstance = (id) => {
      deleted.push(id);
      return deleteInstance(id);
    };
    await world.until('it is marked', () => world.nodes().get(node)?.state === 'deleting');
    expect(world.nodes().get(node)).toMatchObject({ external_id: null });
    expect(deleted).toEqual([]);
  });

  it('is kept if it is in use, on hold or allocated, although its instance is missing', async () => {
    await world.launcher([demo()]);
    const taken = await world.during(world.requestor.take(await world.served(['small'])));
    const held = await heldNode();
    const [allocated = ''] = await world.fulfilled(await world.submit(['large']));
    await world.clock.advance(SETTLED_MS);
    const nodes = [...taken.ids, held, allocated];
    for (const node of nodes) world.cloud.destroyInstance(instanceOf(node));
    await world.clock.advance(10 * MINUTE_MS);
    expect(nodes.map((node) => world.nodes().get(node)?.state)).toEqual(['in-use', 'hold', 'ready']);
  });

  it('that two launchers serve is deleted once', async () => {
    await world.launcher([demo()], 'launcher1');
    await world.launcher([demo()], 'launcher2');
    const [node = ''] = await settledNodes(1);
    world.cloud.destroyInstance(instanceOf(node));
    await world.clock.advance(REPLACED_MS);
    expect(world.nodes().has(node)).toBe(false);
    expect(said('A ready node has lost its instance; deleting it')).toHaveLength(1);
  });
});

describe('if many instances are missing', () => {
  it('no node is deleted or handed out until the cloud lists them again', async () => {
    let hidden: ReadonlySet<string> = new Set();
    const list = (all: readonly Instance[]): readonly Instance[] =>
      all.filter(({ externalId }) => !hidden.has(externalIdKey(externalId)));
    const { launcher } = await world.launcher([demo()], 'launcher1', listing(list));
    const nodes = await settledNodes(5);
    hidden = new Set(nodes.map(instanceOf));
    await world.clock.advance(10 * MINUTE_MS);
    expect(ready().sort()).toEqual(nodes.sort());
    expect(launcher.activity()[0]?.missingInstances).toMatchObject({ missing: 5, total: 5 });
    expect(warnings.filter(({ message }) => message.includes('instances of too many nodes'))).toHaveLength(1);

    const [other = ''] = await world.fulfilled(await world.submit(['small']));
    expect(nodes).not.toContain(other);
    hidden = new Set();
    await world.clock.advance(2 * MINUTE_MS);
    expect(launcher.activity()[0]?.missingInstances).toBeUndefined();
    expect(nodes).toContain((await world.fulfilled(await world.submit(['small'])))[0]);
  });

  it('those of nodes in use count, too', async () => {
    await world.launcher([demo()]);
    const inUse = await world.during(
      world.requestor.take(await world.served(Array.from({ length: 4 }, () => 'small'))),
    );
    const [free = ''] = await settledNodes(1);
    for (const node of [...inUse.ids, free]) world.cloud.destroyInstance(instanceOf(node));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.nodes().get(free)).toMatchObject({ state: 'ready' });
  });

  it('failed ones among them are deleted', async () => {
    await world.launcher([demo()]);
    const nodes = await settledNodes(5);
    for (const node of nodes) world.cloud.breakInstance(instanceOf(node));
    await world.clock.advance(REPLACED_MS);
    expect(ready()).toEqual([]);
  });
});
