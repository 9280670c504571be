/** Tests of the launcher's clean-up, as seen in ZooKeeper and the cloud. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  silentLogger,
  type JsonObject,
  type LogFields,
  type Logger,
  type Provider,
  type Resource,
} from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { readCloudSettings } from '@nodepool/driver-example';
import { lockRecipe, type ZooKeeper } from '@nodepool/zookeeper';
import { spoiltDriver } from './support/spoilt-driver.js';
import { World, pool, provider } from './support/world.js';

const NODES = '/nodepool/nodes';
const REQUESTS = '/nodepool/requests';
const MINUTE_MS = 60_000;

let world: World;
/** A client of another program with access to ZooKeeper. */
let other: ZooKeeper;
/** Warnings, and other log lines, of the launchers. */
let warnings: { message: string; fields: LogFields }[];
let notes: { message: string; fields: LogFields }[];

beforeEach(() => {
  world = new World();
  other = world.server.connect();
  warnings = [];
  notes = [];
  const recorder = (always: LogFields): Logger => ({
    ...silentLogger,
    with: (more) => recorder({ ...always, ...more }),
    info: (message, fields) => void notes.push({ message, fields: { ...always, ...fields } }),
    warn: (message, fields) => void warnings.push({ message, fields: { ...always, ...fields } }),
    error: (message, _error, fields) => void warnings.push({ message, fields: { ...always, ...fields } }),
  });
  world.log = recorder({});
});
afterEach(async () => {
  await world.during(other.close());
  expect(await world.end()).toEqual([]);
});

const demo = (): JsonObject => provider('demo', [pool('main', ['small', 'large'])]);

async function submit(labels: string[], options = {}): Promise<string> {
  return world.during(world.requestor.submit(labels, options));
}

function stateOf(id: string): unknown {
  return world.records(REQUESTS).get(id)?.state;
}

async function served(id: string): Promise<string[]> {
  await world.until(`request ${id} is fulfilled`, () => stateOf(id) === 'fulfilled');
  return world.records(REQUESTS).get(id)?.nodes as string[];
}

/** Creates a ready node that is not allocated to a request. */
async function freeNode(label = 'small'): Promise<string> {
  const id = await submit([label]);
  const [node = ''] = await served(id);
  await world.during(world.requestor.withdraw(id));
  await world.until('the node is free', () => world.nodes().get(node)?.allocated_to === null);
  return node;
}

/** Creates a node that its requestor holds. */
async function heldNode(change: JsonObject = {}): Promise<string> {
  const id = await submit(['small']);
  await served(id);
  const taken = await world.during(world.requestor.take(id));
  const { ids } = taken;
  const [node = ''] = ids;
  const heldSince = { state: 'hold', state_time: world.clock.now() / 1000 };
  await world.during(world.requestor.change(`${NODES}/${node}`, { ...heldSince, ...change }));
  await world.during(world.requestor.die(taken));
  return node;
}

async function createInstance(tags: Record<string, string>, name = 'stray'): Promise<string> {
  const spec = { name, zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags };
  const { id } = await world.during(Promise.resolve(world.cloud.createInstance(spec)));
  return id;
}

function tagsOfNode(nodeId: string, attempt: string): Record<string, string> {
  return {
    nodepool_provider_name: 'demo',
    nodepool_pool_name: 'main',
    nodepool_node_id: nodeId,
    nodepool_launch_attempt: attempt,
  };
}

function exists(instance: string): boolean {
  return world.cloud.existingInstances().some(({ id }) => id === instance);
}

function readyFor(seconds: number): Partial<NodepoolConfig> {
  return { labels: new Map([['small', { name: 'small', minReady: 0, maxReadyAgeMs: seconds * 1000 }]]) };
}

describe('a node that has been ready for longer than max-ready-age', () => {
  it('is deleted then, not before; others stay', async () => {
    await world.launcher([demo()], 'launcher1', readyFor(600));
    const large = await freeNode('large');
    const small = await freeNode('small');
    const since = Number(world.nodes().get(small)?.state_time);
    await world.until('it is deleted', () => !world.nodes().has(small));
    expect(world.clock.now() / 1000 - since).toBeGreaterThanOrEqual(600);
    expect(world.clock.now() / 1000 - since).toBeLessThan(660);
    expect([...world.nodes().keys()]).toEqual([large]);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  it('is left to the request that it is allocated to', async () => {
    await world.launcher([demo()], 'launcher1', readyFor(600));
    const id = await submit(['small']);
    const [node = ''] = await served(id);
    await world.clock.advance(1_200_000);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: id });
    await world.during(world.requestor.withdraw(id));
    await world.until('it is deleted', () => !world.nodes().has(node));
  });

  it('is deleted once, whatever the number of launchers, and also by a limit that comes later', async () => {
    const { launcher } = await world.launcher([demo()]);
    await world.launcher([demo()], 'launcher2', readyFor(3600));
    const node = await freeNode();
    await world.clock.advance(1_200_000);
    expect(world.nodes().has(node)).toBe(true);
    await world.during(launcher.apply(world.config([demo()], readyFor(600))));
    await world.until('it is deleted', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });
});

describe('a held node', () => {
  const hold = (seconds: number): Partial<NodepoolConfig> => ({ maxHoldAgeMs: seconds * 1000 });

  it.each<[string, JsonObject, number]>([
    ['what its requestor wants', { hold_expiration: 300 }, 300],
    ['what its requestor wants, written as text', { hold_expiration: '300' }, 300],
    ['max-hold-age, where the requestor wants more', { hold_expiration: 7200 }, 3600],
    ['max-hold-age, where the requestor wants it for ever', { hold_expiration: 0 }, 3600],
    ['max-hold-age, where the requestor says nothing', {}, 3600],
    ['max-hold-age, where the requestor writes nonsense', { hold_expiration: 'soon' }, 3600],
  ])('is kept for %s', async (_what, change, seconds) => {
    await world.launcher([demo()], 'launcher1', hold(3600));
    const node = await heldNode(change);
    const heldUntil = (Number(world.nodes().get(node)?.state_time) + seconds) * 1000;
    await world.clock.advance(heldUntil - world.clock.now() - 1000);
    expect(world.nodes().get(node)?.state).toBe('hold');
    await world.clock.advance(MINUTE_MS);
    expect(world.nodes().has(node)).toBe(false);
  });

  it('is kept for ever when nobody limits that', async () => {
    await world.launcher([demo()]);
    const node = await heldNode({ hold_expiration: 0 });
    await world.clock.advance(180 * MINUTE_MS);
    expect(world.nodes().get(node)?.state).toBe('hold');
  });

  it('is not touched while somebody has it locked', async () => {
    await world.launcher([demo()], 'launcher1', hold(600));
    const id = await submit(['small']);
    await served(id);
    const taken = await world.during(world.requestor.take(id));
    const { ids } = taken;
    await world.during(world.requestor.change(`${NODES}/${ids[0]}`, { state: 'hold', state_time: 0 }));
    await world.clock.advance(1_200_000);
    expect(world.nodes().get(ids[0]!)?.state).toBe('hold');
    await world.during(world.requestor.die(taken));
    await world.until('it is deleted', () => world.nodes().size === 0);
  });
});

describe('an instance', () => {
  const ours = (nodeId: string, attempt = 'a'): Record<string, string> => ({
    ...tagsOfNode(nodeId, attempt),
    nodepool_installation: world.installation(),
  });

  it('whose node is gone is deleted within two rounds', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours('0000009999'));
    await world.clock.advance(MINUTE_MS);
    expect(exists(leaked)).toBe(true);
    await world.clock.advance(3 * MINUTE_MS);
    expect(exists(leaked)).toBe(false);
  });

  it('of somebody else is not touched', async () => {
    await world.launcher([demo()]);
    const theirs = [
      await createInstance({}),
      await createInstance({ nodepool_provider_name: 'another', nodepool_node_id: '0000009999' }),
      await createInstance({ nodepool_provider_name: 'demo' }),
    ];
    await world.clock.advance(10 * MINUTE_MS);
    expect(theirs.map(exists)).toEqual([true, true, true]);
  });

  it('of another installation with the same configuration is not touched, however few there are', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const production = [
      await createInstance({ ...ours('0000009999'), nodepool_installation: 'production' }),
      await createInstance({ ...ours(node, 'theirs'), nodepool_installation: 'production' }),
    ];
    await world.clock.advance(10 * MINUTE_MS);
    expect(production.map(exists)).toEqual([true, true]);
  });

  it('without an installation is not touched, as it can be of any, but is reported once', async () => {
    await world.launcher([demo()]);
    const unmarked = await createInstance(tagsOfNode('0000009999', 'a'));
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unmarked)).toBe(true);
    const said = warnings.filter(({ message }) => message.includes('without the tag nodepool_installation'));
    expect(said.map(({ fields }) => fields)).toMatchObject([{ provider: 'demo', names: ['stray'] }]);
  });

  it('of the old installation goes once an operator has restored the id', async () => {
    const { store } = await world.launcher([demo()]);
    const old = await createInstance({ ...ours('0000009999'), nodepool_installation: 'production' });
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(old)).toBe(true);
    await world.during(store.installation.set('production'));
    await world.until('it is gone', () => !exists(old));
  });

  it('is deleted with a line in the log that names it and says why', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours('0000009999'));
    await world.until('it is gone', () => !exists(leaked));
    const said = notes.filter(({ message }) => message === 'Deleting in the cloud');
    expect(said.map(({ fields }) => fields)).toMatchObject([
      { kind: 'instance', external_id: leaked, provider: 'demo', because: 'its node has no record' },
    ]);
  });

  describe('of a node that is deleted, whose id was not recorded,', () => {
    const deletion = async (more: () => Record<string, string>): Promise<string> => {
      await world.launcher([demo()]);
      const node = await freeNode();
      const [own] = world.cloud.existingInstances();
      world.cloud.destroyInstance(own!.id);
      const found = await createInstance({ ...tagsOfNode(node, 'theirs'), ...more() });
      await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'used', external_id: null }));
      await world.until('its record is gone', () => !world.nodes().has(node));
      return found;
    };

    it('is kept if it has the node’s id in another installation', async () => {
      expect(exists(await deletion(() => ({ nodepool_installation: 'production' })))).toBe(true);
    });

    it('is kept if it has no installation and is from another attempt', async () => {
      expect(exists(await deletion(() => ({})))).toBe(true);
    });

    it('is deleted if it is of this installation', async () => {
      expect(exists(await deletion(() => ({ nodepool_installation: world.installation() })))).toBe(false);
    });
  });

  it('of somebody else is not touched, though the driver says that it looks like ours', async () => {
    const tags = { nodepool_node_id: '9999999999', nodepool_provider_name: 'theirs', nodepool_pool_name: 'main' };
    const seen: (readonly Resource[])[] = [];
    const lookAround: Provider['cleanupLeakedResources'] = async (round) => {
      seen.push(await round.leaked([{ kind: 'instance', externalId: 'i-1', name: 'theirs', tags }]));
    };
    const spoilt = spoiltDriver(world.cloud, () => ({ cleanupLeakedResources: lookAround }));
    await world.launcher([demo()], 'launcher1', spoilt);
    await world.clock.advance(5 * MINUTE_MS);
    expect(seen.length).toBeGreaterThan(2);
    expect(seen.flat()).toEqual([]);
  });

  it('of a node that is there is not touched, whatever the state of the node', async () => {
    world.cloud.configure({ bootTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    await world.launcher([demo()]);
    const id = await submit(['small', 'large']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    const instances = world.cloud.existingInstances().map((instance) => instance.id);
    await served(id);
    await world.clock.advance(10 * MINUTE_MS);
    await world.during(world.requestor.take(id));
    await world.clock.advance(10 * MINUTE_MS);
    expect(instances.map(exists)).toEqual([true, true]);
  });

  it('of another attempt than its node is from is a twin, and deleted', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const own = world.cloud.existingInstances()[0]!.id;
    const twin = await createInstance(ours(node, 'late'));
    await world.until('the twin is gone', () => !exists(twin));
    expect(exists(own)).toBe(true);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', external_id: own });
  });

  it('of an earlier attempt of a launch in progress is deleted, and the launch goes on', async () => {
    world.cloud.configure({ bootTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    await world.launcher([demo()]);
    const id = await submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    const own = world.cloud.existingInstances()[0]!.id;
    const [node = ''] = world.nodes().keys();
    const twin = await createInstance(ours(node, 'early'));
    await world.until('the twin is gone', () => !exists(twin));
    expect(exists(own)).toBe(true);
    await served(id);
    expect(world.nodes().get(node)?.external_id).toBe(own);
  });

  it('that does not say which attempt it is from is not taken for a twin', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    const { nodepool_launch_attempt: _attempt, ...withoutAttempt } = ours(node);
    const unknown = await createInstance(withoutAttempt);
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(unknown)).toBe(true);
  });

  it('is kept, and said so, when too large a share of all would be deleted', async () => {
    await world.launcher([demo()]);
    await freeNode();
    const stray: string[] = [];
    for (let i = 0; i < 4; i += 1) {
      stray.push(await createInstance(ours(`000000999${i}`), `stray${i}`));
    }
    await world.clock.advance(10 * MINUTE_MS);
    expect(stray.every(exists)).toBe(true);
    const said = warnings.filter(({ message }) => message.includes('none of them is deleted'));
    expect(said[0]?.fields).toMatchObject({ provider: 'demo', leaked: 4, resources: 5, allowed: 3 });
    world.cloud.destroyInstance(stray[0]!);
    await world.until('three are few enough', () => !stray.some(exists));
  });

  it('stays while ZooKeeper cannot be asked', async () => {
    const { zk } = await world.launcher([demo()]);
    const leaked = await createInstance(ours('0000009999'));
    world.server.partition(zk);
    await world.clock.advance(10 * MINUTE_MS);
    expect(exists(leaked)).toBe(true);
    world.server.heal(zk);
    await world.until('it is gone', () => !exists(leaked));
  });

  it('is looked for in spite of a cloud that fails now and then', async () => {
    await world.launcher([demo()]);
    const leaked = await createInstance(ours('0000009999'));
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

  it('is kept as long as its upload is known, in whatever state, and deleted when it is not', async () => {
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

it.each(['init', 'building', 'testing'])('a node in %s that nobody launches any more goes', async (state) => {
  await world.launcher([demo()]);
  const node = await freeNode();
  const abandoned = { state, allocated_to: '200-0000009999' };
  await world.during(world.requestor.change(`${NODES}/${node}`, abandoned));
  await world.until('its record is gone', () => !world.nodes().has(node));
  expect(world.cloud.existingInstances()).toEqual([]);
});

it('a node that the holder of its request has just made is not touched by a launcher without its pool', async () => {
  await world.launcher([demo()]);
  const node = await freeNode();
  const id = await submit(['unheard-of'], { provider: 'elsewhere' });
  const lock = await world.during(lockRecipe(other).acquire(`/nodepool/requests-lock/${id}`));
  await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
  const made = { state: 'init', pool: 'another', allocated_to: id };
  await world.during(world.requestor.change(`${NODES}/${node}`, made));
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.nodes().get(node)).toMatchObject(made);
  await world.during(lock.release());
  await world.until('its record is gone', () => !world.nodes().has(node));
});

it('nobody tries to lock a used node that its requestor still has locked', async () => {
  await world.launcher([demo()]);
  const id = await submit(['small']);
  await served(id);
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

it('a node whose instance is gone, but not its record, goes too', async () => {
  await world.launcher([demo()]);
  const node = await freeNode();
  for (const { id } of world.cloud.existingInstances()) world.cloud.destroyInstance(id);
  await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'deleted' }));
  await world.until('its record is gone', () => !world.nodes().has(node));
});

it('a node whose request cannot be read stays allocated to it', async () => {
  await world.launcher([demo()]);
  const id = await submit(['small']);
  const [node] = await served(id);
  const { data } = await world.during(other.get(`${REQUESTS}/${id}`));
  await world.during(other.set(`${REQUESTS}/${id}`, Buffer.from('no JSON')));
  await world.clock.advance(5 * MINUTE_MS);
  expect(world.nodes().get(node!)).toMatchObject({ state: 'ready', allocated_to: id });
  await world.during(other.set(`${REQUESTS}/${id}`, data));
  await world.during(world.requestor.withdraw(id));
  await world.until('it is free', () => world.nodes().get(node!)?.['allocated_to'] === null);
});

describe('a pending request that nobody holds', () => {
  it('is put back when nobody takes it over', async () => {
    await world.launcher([demo()]);
    // Another program serves the provider and accepts only `requested` requests.
    await registerPool('elsewhere', ['small']);
    const id = await submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    await world.clock.advance(MINUTE_MS / 2);
    expect(stateOf(id)).toBe('pending');
    await world.clock.advance(MINUTE_MS);
    expect(stateOf(id)).toBe('requested');
    expect(world.records(REQUESTS).get(id)).toMatchObject({ requestor_data: { build_set_uuid: 'b' } });
    expect(world.lockHolders()).toEqual([]);
  });

  it('gives its ready nodes back to everybody', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await registerPool('elsewhere', ['small']);
    const id = await submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    await world.during(world.requestor.change(`${NODES}/${node}`, { allocated_to: id, provider: 'elsewhere' }));
    await world.clock.advance(3 * MINUTE_MS);
    expect(stateOf(id)).toBe('requested');
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: null });
    await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('gives ready nodes back that count for no tenant, if they exceed its limit', async () => {
    const tenantLimits = new Map([['red', { instances: 1 }]]);
    await world.launcher([demo()], 'launcher1', { tenantLimits });
    const nodes = [await freeNode('small'), await freeNode('large')];
    await registerPool('elsewhere', ['small', 'large']);
    const id = await submit(['small', 'large'], { provider: 'elsewhere', tenant: 'red' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    const claim = { allocated_to: id, tenant_name: 'red', provider: 'elsewhere' };
    for (const node of nodes) await world.during(world.requestor.change(`${NODES}/${node}`, claim));
    await world.clock.advance(3 * MINUTE_MS);
    const free = { state: 'ready', allocated_to: null, tenant_name: null };
    expect(nodes.map((node) => world.nodes().get(node))).toMatchObject([free, free]);
    for (const node of nodes) await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('is put back with a launch that could be gone on with only when nobody does for long', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await registerPool('elsewhere', ['small']);
    const id = await submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    const begun = { allocated_to: id, provider: 'elsewhere', pool: 'main', state: 'building' };
    await world.during(world.requestor.change(`${NODES}/${node}`, begun));
    await world.clock.advance(3 * MINUTE_MS);
    expect(stateOf(id)).toBe('pending');
    await world.clock.advance(4 * MINUTE_MS);
    expect(stateOf(id)).toBe('requested');
    await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('is left alone while somebody holds it', async () => {
    world.cloud.configure({ bootTimeMs: [10 * MINUTE_MS, 10 * MINUTE_MS] });
    await world.launcher([demo()]);
    await world.launcher([provider('other', [pool('main', ['other'])])], 'launcher2');
    const id = await submit(['small']);
    await world.until('it is being served', () => stateOf(id) === 'pending');
    await world.clock.advance(5 * MINUTE_MS);
    expect(stateOf(id)).toBe('pending');
    await served(id);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  async function registerPool(providerName: string, labels: string[]): Promise<void> {
    const component = {
      hostname: 'elsewhere',
      kind: 'pool',
      state: 'running',
      version: '11.0.0',
      model_api: 0,
      id: `elsewhere-PoolWorker.${providerName}-main-1`,
      name: 'main',
      provider_name: providerName,
      supported_labels: labels,
      priority: 100,
      paused: false,
    };
    const data = Buffer.from(JSON.stringify(component));
    await world.during(other.create('/nodepool/components/pool/elsewhere', data, { mode: 'ephemeral-sequential' }));
  }
});

describe('nodes of a provider that nobody serves any more', () => {
  it('are left alone, and somebody is told once', async () => {
    const { launcher } = await world.launcher([demo()]);
    const id = await submit(['small', 'small']);
    await served(id);
    const taken = await world.during(world.requestor.take(id));
    await world.during(launcher.apply(world.config([provider('next', [pool('main', ['other'])])])));
    await world.during(world.requestor.giveBack(taken));
    await world.clock.advance(30 * MINUTE_MS);
    expect([...world.nodes().values()].map(({ state }) => state)).toEqual(['used', 'used']);
    expect(warnings.filter(({ message }) => message.startsWith('Nobody serves the provider'))).toMatchObject([
      { fields: { provider: 'demo', nodes: 2 } },
    ]);
    await world.during(launcher.apply(world.config([demo()])));
    await world.until('they are deleted', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('are deleted by another launcher that still serves it, without a word', async () => {
    const { launcher } = await world.launcher([demo()]);
    await world.launcher([demo()], 'launcher2');
    const id = await submit(['small']);
    await served(id);
    const taken = await world.during(world.requestor.take(id));
    await world.during(launcher.apply(world.config([])));
    await world.during(world.requestor.giveBack(taken));
    await world.until('it is deleted', () => world.nodes().size === 0);
    await world.clock.advance(10 * MINUTE_MS);
    expect(warnings.filter(({ message }) => message.startsWith('Nobody serves the provider'))).toEqual([]);
  });
});

describe('a node record that cannot be read', () => {
  it('is removed when it is empty and nobody has held it for a while', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`));
    await world.during(other.create(`${NODES}/0000000042/lock`));
    await world.during(other.create(`${NODES}/0000000043`));
    await world.until('they are gone', () => ![...world.server.dump().keys()].some((path) => path.includes('000004')));
  });

  it('is left alone while somebody contends for its lock', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`));
    await world.during(other.create(`${NODES}/0000000042/lock`));
    const contender = `${NODES}/0000000042/lock/0123456789abcdef0123456789abcdef__lock__`;
    const { path } = await world.during(other.create(contender, undefined, { mode: 'ephemeral-sequential' }));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.server.dump().has(path)).toBe(true);
    await world.during(other.delete(path));
    await world.until('it is gone', () => !world.server.dump().has(`${NODES}/0000000042`));
  });

  it('is left to people when there is something in it', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`, Buffer.from('{"state": "rea')));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.server.dump().has(`${NODES}/0000000042`)).toBe(true);
    await world.during(other.delete(`${NODES}/0000000042`));
  });
});
