/** Tests of the launcher's search for leaked instances and images, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import { silentMetrics, type Metrics, type Provider, type Resource } from '@nodepool/core';
import { readCloudSettings } from '@nodepool/driver-example';
import { lockRecipe } from '@nodepool/zookeeper';
import { LEAKED_RESOURCES } from '../src/index.js';
import { faultyDriver } from './support/faulty-driver.js';
import {
  NODES,
  MINUTE_MS,
  world,
  other,
  warnings,
  notes,
  demo,
  formerNode,
  freeNode,
  createInstance,
  tagsOfNode,
  exists,
} from './support/cleanup-world.js';
import { REQUESTS } from './support/world.js';

describe('an instance', () => {
  const ours = (nodeId: string, attempt = 'a'): Record<string, string> => ({
    ...tagsOfNode(nodeId, attempt),
    nodepool_installation: world.installation(),
  });

  it('without a node is deleted within two rounds', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours(await formerNode()));
    await world.clock.advance(MINUTE_MS);
    expect(exists(leaked)).toBe(true);
    await world.clock.advance(3 * MINUTE_MS);
    expect(exists(leaked)).toBe(false);
  });

  it('is counted once, even if its deletion takes several rounds', async () => {
    world.cloud.configure({ deleteTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    const counted: unknown[] = [];
    const count: Metrics['count'] = (metric, labels) => {
      if (metric === LEAKED_RESOURCES) counted.push(labels);
    };
    world.observation = { metrics: { ...silentMetrics, count } };
    await world.launcher([demo()]);
    const leaked = await createInstance(ours(await formerNode()));
    await world.clock.advance(15 * MINUTE_MS);
    expect(exists(leaked)).toBe(false);
    expect(counted).toEqual([{ provider: 'demo', kind: 'instance' }]);
  });

  it('of another owner is not deleted', async () => {
    await world.launcher([demo()]);
    const theirs = [
      await createInstance({}),
      await createInstance({ nodepool_provider_name: 'another', nodepool_node_id: '0000009999' }),
      await createInstance({ nodepool_provider_name: 'demo' }),
    ];
    await world.clock.advance(10 * MINUTE_MS);
    expect(theirs.map(exists)).toEqual([true, true, true]);
  });

  it('of another installation with the same configuration is not deleted, even if only few exist', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const production = [
      await createInstance({ ...ours('0000009999'), nodepool_installation: 'production' }),
      await createInstance({ ...ours(node, 'theirs'), nodepool_installation: 'production' }),
    ];
    await world.clock.advance(10 * MINUTE_MS);
    expect(production.map(exists)).toEqual([true, true]);
  });

  it('without an installation id is kept, because its owner is unknown, and is reported once', async () => {
    await world.launcher([demo()]);
    const unmarked = await createInstance(tagsOfNode('0000009999', 'a'));
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unmarked)).toBe(true);
    const said = warnings.filter(({ message }) => message.includes('lack some of the tags'));
    expect(said.map(({ fields }) => fields)).toMatchObject([
      { provider: 'demo', names: ['stray'], missing: ['nodepool_installation'] },
    ]);
  });

  it.each(['nodepool_pool_name', 'nodepool_launch_attempt'])('without the tag %s is kept and reported', async (tag) => {
    await world.launcher([demo()]);
    const { [tag]: _tag, ...incomplete } = ours('0000009999');
    const unmarked = await createInstance(incomplete);
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unmarked)).toBe(true);
    expect(warnings.filter(({ fields }) => fields['missing'] !== undefined)).toMatchObject([
      { fields: { names: ['stray'], missing: [tag] } },
    ]);
  });

  it('of another pool with the id of a node is kept', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const other = await createInstance({ ...ours(node, 'theirs'), nodepool_pool_name: 'another' });
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(other)).toBe(true);
  });

  it('of the previous installation is deleted once an operator has restored the id and confirmed', async () => {
    const { store } = await world.launcher([demo()]);
    const old = await createInstance({ ...ours(await formerNode()), nodepool_installation: 'production' });
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(old)).toBe(true);
    await world.during(store.installation.set('production'));
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(old)).toBe(true);
    await world.during(store.suspensions.resume(null));
    await world.until('it is gone', () => !exists(old));
  });

  it('is deleted with the reason in the log', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours(await formerNode()));
    await world.until('it is gone', () => !exists(leaked));
    const said = notes.filter(
      ({ message, fields }) => message === 'Deleting in the cloud' && fields['external_id'] === leaked,
    );
    expect(said.map(({ fields }) => fields)).toMatchObject([
      { kind: 'instance', external_id: leaked, provider: 'demo', because: 'its node has no record' },
    ]);
  });

  describe('of a deleted node without a recorded id', () => {
    const RECORDED = 'b'.repeat(32);
    const progress = { kind: 'deletion', attempt: RECORDED, number: 1, started: 1, machine: null };

    /** Creates an instance of the recorded attempt and one with the tags, and waits for the deletion of the record. */
    const deletion = async (
      tags: (node: string) => Record<string, string>,
    ): Promise<{ own: string; other: string }> => {
      await world.launcher([demo()]);
      const node = await freeNode();
      const [first] = world.cloud.existingInstances();
      world.cloud.destroyInstance(first!.id);
      const own = await createInstance(ours(node, RECORDED));
      const other = await createInstance(tags(node));
      await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'used', external_id: null, progress }));
      await world.until('its record is gone', () => !world.nodes().has(node));
      return { own, other };
    };

    it.each<[string, (node: string) => Record<string, string>]>([
      ['installation', (node) => ({ ...ours(node, RECORDED), nodepool_installation: 'production' })],
      ['provider', (node) => ({ ...ours(node, RECORDED), nodepool_provider_name: 'another' })],
      ['pool', (node) => ({ ...ours(node, RECORDED), nodepool_pool_name: 'another' })],
      ['attempt', (node) => ours(node, 'theirs')],
      ['attempt, without an installation', (node) => tagsOfNode(node, 'theirs')],
    ])('is kept if it is of another %s', async (_what, tags) => {
      const { own, other } = await deletion(tags);
      expect([exists(own), exists(other)]).toEqual([false, true]);
    });

    it('is deleted without an installation if it is of the recorded attempt', async () => {
      const { own, other } = await deletion((node) => tagsOfNode(node, RECORDED));
      expect([exists(own), exists(other)]).toEqual([false, false]);
    });
  });

  it('of another owner is not deleted, although the driver reports Nodepool’s tags', async () => {
    const tags = { nodepool_node_id: '9999999999', nodepool_provider_name: 'theirs', nodepool_pool_name: 'main' };
    const seen: (readonly Resource[])[] = [];
    const lookAround: Provider['cleanupLeakedResources'] = async (round) => {
      seen.push(await round.leaked([{ kind: 'instance', externalId: 'i-1', name: 'theirs', tags }]));
    };
    const overrides = faultyDriver(world.cloud, () => ({ cleanupLeakedResources: lookAround }));
    await world.launcher([demo()], 'launcher1', overrides);
    await world.clock.advance(5 * MINUTE_MS);
    expect(seen.length).toBeGreaterThan(2);
    expect(seen.flat()).toEqual([]);
  });

  it.each([
    ['is deleted if none of its possible owners has a record', true, (former: string) => [former]],
    ['is kept while one of its possible owners has a record', false, (former: string, node: string) => [former, node]],
    ['is kept if ZooKeeper has not created one of its possible owners', false, (f: string) => [f, '0000009999']],
  ])('of a call that created several %s', async (_what, isLeaked, others) => {
    const leaked: Resource[] = [];
    let offered: readonly Resource[] = [];
    const lookAround: Provider['cleanupLeakedResources'] = async (round) => {
      leaked.push(...(await round.leaked(offered)));
    };
    const overrides = faultyDriver(world.cloud, () => ({ cleanupLeakedResources: lookAround }));
    await world.launcher([demo()], 'launcher1', overrides);
    const former = await formerNode();
    const node = await freeNode();
    const otherOwners = others(former, node).map((id) => ours(id, 'b'));
    offered = [{ kind: 'volume', externalId: 'vol-1', name: 'shared', tags: ours(former, 'a'), otherOwners }];
    await world.clock.advance(5 * MINUTE_MS);
    expect(leaked.length > 0).toBe(isLeaked);
  });

  it('of an existing node is not deleted, in any state of the node', async () => {
    world.cloud.configure({ bootTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    await world.launcher([demo()]);
    const id = await world.submit(['small', 'large']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    const instances = world.cloud.existingInstances().map((instance) => instance.id);
    await world.fulfilled(id);
    await world.clock.advance(10 * MINUTE_MS);
    await world.during(world.requestor.take(id));
    await world.clock.advance(10 * MINUTE_MS);
    expect(instances.map(exists)).toEqual([true, true]);
  });

  it('is not deleted at its first sighting because a leaked one had its id before', async () => {
    world.cloud.configure({ reusesIds: true });
    await world.launcher([demo()]);
    const nodes = [await formerNode(), await formerNode()];
    const first = await createInstance(ours(nodes[0]!, 'a'));
    await world.clock.advance(1.5 * MINUTE_MS);
    world.cloud.destroyInstance(first);
    const second = await createInstance(ours(nodes[1]!, 'b'));
    expect(second).toBe(first);
    await world.clock.advance(MINUTE_MS);
    expect(exists(second)).toBe(true);
    await world.clock.advance(2 * MINUTE_MS);
    expect(exists(second)).toBe(false);
  });

  it('of another attempt than its node’s is a duplicate, and deleted', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const own = world.cloud.existingInstances()[0]!.id;
    await world.clock.advance(15_000);
    const twin = await createInstance(ours(node, 'late'));
    await world.until('the twin is gone', () => !exists(twin));
    expect(exists(own)).toBe(true);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', external_id: own });
  });

  it('of an earlier attempt of a running launch is deleted, and the launch continues', async () => {
    world.cloud.configure({ bootTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    await world.launcher([demo()]);
    const id = await world.submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    const own = world.cloud.existingInstances()[0]!.id;
    const [node = ''] = world.nodes().keys();
    await world.clock.advance(15_000);
    const twin = await createInstance(ours(node, 'early'));
    await world.until('the twin is gone', () => !exists(twin));
    expect(world.stateOf(id)).toBe('pending');
    expect(exists(own)).toBe(true);
    await world.fulfilled(id);
    expect(world.nodes().get(node)?.external_id).toBe(own);
  });

  it('of another pool is not treated as a duplicate', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await world.clock.advance(15_000);
    const unknown = await createInstance({ ...ours(node, 'late'), nodepool_pool_name: 'another' });
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unknown)).toBe(true);
  });

  it('without an attempt is not treated as a duplicate', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await world.clock.advance(15_000);
    const { nodepool_launch_attempt: _attempt, ...withoutAttempt } = ours(node);
    const unknown = await createInstance(withoutAttempt);
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unknown)).toBe(true);
  });

  it('is kept while ZooKeeper is unreachable', async () => {
    const { zk } = await world.launcher([demo()]);
    const leaked = await createInstance(ours(await formerNode()));
    world.server.partition(zk);
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(leaked)).toBe(true);
    world.server.heal(zk);
    await world.until('it is gone', () => !exists(leaked));
  });

  it('is found although the cloud fails occasionally', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours(await formerNode()));
    const { faults } = readCloudSettings({});
    world.cloud.configure({ faults: { ...faults, 'list-errors': 1 } });
    await world.clock.advance(5 * MINUTE_MS);
    expect(exists(leaked)).toBe(true);
    world.cloud.configure({ faults });
    await world.until('it is gone', () => !exists(leaked));
  });
});

describe('an image in the cloud', () => {
  const BUILD = '0123456789abcdef0123456789abcdef';
  const tags = (upload: string, more: Record<string, string> = {}): Record<string, string> => ({
    nodepool_installation: world.installation(),
    nodepool_provider_name: 'demo',
    nodepool_image_name: 'debian',
    nodepool_build_id: BUILD,
    nodepool_upload_id: upload,
    nodepool_image_format: 'raw',
    ...more,
  });

  async function createImage(imageTags: Record<string, string>): Promise<string> {
    const spec = { name: 'image', format: 'raw', size: 1, md5: null, sha256: null, tags: imageTags, properties: {} };
    const { id } = await world.during(Promise.resolve(world.cloud.createImage(spec)));
    return id;
  }

  async function images(): Promise<string[]> {
    const { items } = await world.during(Promise.resolve(world.cloud.listImages(null)));
    return items.map(({ id }) => id);
  }

  it('is kept while its upload has a record in any state, and deleted without one', async () => {
    await world.launcher([demo()]);
    const upload = `/nodepool/images/debian/builds/${BUILD}/providers/demo/images/0000000001`;
    const parts = upload.split('/').slice(1);
    for (let length = 3; length < parts.length; length += 1) {
      await world.during(other.create(`/${parts.slice(0, length).join('/')}`));
    }
    await world.during(other.create(upload, Buffer.from(JSON.stringify({ state: 'uploading', state_time: 1 }))));
    const known = await createImage(tags('0000000001'));
    const leaked = await createImage(tags('0000000002'));
    const kept = [
      await createImage(tags('../../x')),
      await createImage(tags('0000000003', { nodepool_image_name: '..' })),
      await createImage(tags('0000000003', { nodepool_image_name: '../nodes' })),
      await createImage(tags('0000000003', { nodepool_installation: 'production' })),
      await createImage({ nodepool_provider_name: 'demo', nodepool_build_id: BUILD, nodepool_upload_id: '0000000003' }),
    ];
    await world.clock.advance(5 * MINUTE_MS);
    expect(await images()).toEqual([known, ...kept]);
    expect(leaked).not.toBe(known);
    await world.during(other.delete(upload));
    await world.clock.advance(5 * MINUTE_MS);
    expect(await images()).toEqual(kept);
  });
});

it.each(['init', 'building', 'testing'])(
  'a node in %s whose launch no launcher continues is deleted',
  async (state) => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const abandoned = { state, allocated_to: '200-0000009999' };
    await world.during(world.requestor.change(`${NODES}/${node}`, abandoned));
    await world.until('its record is gone', () => !world.nodes().has(node));
    expect(world.cloud.existingInstances()).toEqual([]);
  },
);

it('a node that the holder of its request has just created is not changed by a launcher without its pool', async () => {
  await world.launcher([demo()]);
  const node = await freeNode();
  const id = await world.submit(['unheard-of'], { provider: 'elsewhere' });
  const lock = await world.during(lockRecipe(other).acquire(`/nodepool/requests-lock/${id}`));
  await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
  const made = { state: 'init', pool: 'another', allocated_to: id };
  await world.during(world.requestor.change(`${NODES}/${node}`, made));
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.nodes().get(node)).toMatchObject(made);
  await world.during(lock.release());
  await world.until('its record is gone', () => !world.nodes().has(node));
});

it('no launcher tries to lock a used node that its requestor still has locked', async () => {
  await world.launcher([demo()]);
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  const contenders = new Set<string>();
  world.server.onCommit((changes) => {
    for (const { path } of changes) if (path.startsWith(`${NODES}/`) && path.includes('__lock__')) contenders.add(path);
  });
  for (const node of taken.ids) await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'used' }));
  await world.clock.advance(5 * MINUTE_MS);
  expect([...contenders]).toEqual([]);
  await world.during(world.requestor.giveBack(taken));
  await world.until('the nodes are gone', () => world.nodes().size === 0);
});

it('a node whose instance is missing is deleted', async () => {
  await world.launcher([demo()]);
  const node = await freeNode();
  for (const { id } of world.cloud.existingInstances()) world.cloud.destroyInstance(id);
  await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'deleted' }));
  await world.until('its record is gone', () => !world.nodes().has(node));
});

it('a node whose request is unreadable stays allocated to it', async () => {
  await world.launcher([demo()]);
  const id = await world.submit(['small']);
  const [node] = await world.fulfilled(id);
  const { data } = await world.during(other.get(`${REQUESTS}/${id}`));
  await world.during(other.set(`${REQUESTS}/${id}`, Buffer.from('no JSON')));
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.nodes().get(node!)).toMatchObject({ state: 'ready', allocated_to: id });
  await world.during(other.set(`${REQUESTS}/${id}`, data));
  await world.during(world.requestor.withdraw(id));
  await world.until('it is free', () => world.nodes().get(node!)?.['allocated_to'] === null);
});
