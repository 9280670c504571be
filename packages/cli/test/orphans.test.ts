/** `nodepool orphans`: resources without a record, and the suspension of their deletion. */

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Resource } from '@nodepool/core';
import { nodeDataWith } from '@nodepool/core/testing';
import type { NodeHandle } from '@nodepool/store';
import { RunningCli, World } from './world.js';

interface ToyCloud {
  resources: Resource[];
  /** Called before each listing. */
  beforeList: () => Promise<void>;
}

declare global {
  // The driver, a module of its own, finds the cloud by this name.
  var toyCloud: ToyCloud;
}

let world: World;
let installation: string;

beforeEach(async () => {
  world = new World();
  await world.start();
  installation = world.store.installation.id;
  globalThis.toyCloud = { resources: [], beforeList: () => Promise.resolve() };
  const place = join(dirname(world.configFile), 'node_modules', '@nodepool', 'driver-toy');
  await mkdir(place, { recursive: true });
  const nodepool = { driver: 'toy', api: 1 };
  const manifest = { name: '@nodepool/driver-toy', version: '1.0.0', main: 'i.cjs', nodepool };
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest));
  await writeFile(
    join(place, 'i.cjs'),
    `exports.driver = {
      name: 'toy',
      schema: { type: 'object' },
      getProviderConfig: (section) => ({ name: section.name, driver: 'toy', pools: new Map(), diskImages: new Map() }),
      getProvider: (config) => ({
        config,
        start: async () => {},
        stop() {},
        listNodes: async () => globalThis.toyCloud.resources.map((each) => ({ ready: true, deleted: false, ...each })),
        cleanupLeakedResources: async (round) => {
          const cloud = globalThis.toyCloud;
          await cloud.beforeList();
          const leaked = await round.leaked(cloud.resources);
          cloud.resources = cloud.resources.filter((each) => !leaked.includes(each));
        },
      }),
    };`,
  );
  await world.writeConfig(`
zookeeper-servers: [{host: localhost, port: 2181}]
labels: []
providers: [{name: cloud, driver: toy}]
`);
});

afterEach(() => world.stop());

function instance(id: string, more: Readonly<Record<string, string>> = {}, without?: string): Resource {
  const tags: Record<string, string> = {
    nodepool_node_id: '0000000007',
    nodepool_provider_name: 'cloud',
    nodepool_pool_name: 'main',
    nodepool_installation: installation,
    nodepool_launch_attempt: `attempt of ${id}`,
    ...more,
  };
  return {
    kind: 'instance',
    externalId: id,
    name: `name of ${id}`,
    tags: Object.fromEntries(Object.entries(tags).filter(([tag]) => tag !== without)),
  };
}

const left = (): unknown[] => globalThis.toyCloud.resources.map(({ externalId }) => externalId);

/** Fills the cloud with two orphans and their look-alikes. */
async function fillCloud(): Promise<void> {
  const node = await world.node({ provider: 'cloud', external_id: 'used', pool: 'main' });
  globalThis.toyCloud.resources = [
    instance('used', { nodepool_node_id: node }),
    instance('orphan-1'),
    instance('orphan-2'),
    instance('other-provider', { nodepool_provider_name: 'another' }),
    instance('other-installation', { nodepool_installation: 'production' }),
    instance('without-installation', {}, 'nodepool_installation'),
    instance('without-attempt', {}, 'nodepool_launch_attempt'),
    instance('without-pool', {}, 'nodepool_pool_name'),
  ];
}

const LOOKALIKES = ['other-provider', 'other-installation', 'without-installation', 'without-attempt', 'without-pool'];

describe('nodepool orphans', () => {
  it('lists resources of this installation without a record, and mentions others', async () => {
    await fillCloud();
    const { code, out } = await world.run('orphans', 'list', '-o', 'json', '--detail');
    expect(code).toBe(0);
    expect(JSON.parse(out.printed)).toEqual([
      expect.objectContaining({ provider: 'cloud', type: 'instance', id: 'orphan-1', node: '0000000007' }),
      expect.objectContaining({ id: 'orphan-2', tags: expect.arrayContaining(['nodepool_pool_name=main']) }),
    ]);
    expect(out.noted).toContain('provider cloud has 3 more resources without a record, whose tags are incomplete');
    expect(out.noted).toContain('provider cloud has 1 resources of installation production');
  });

  it('deletes them after a confirmation that names provider and number, and no look-alike', async () => {
    await fillCloud();
    expect(await world.run('orphans', 'delete', 'cloud')).toMatchObject({ code: 1 });
    world.answer = 'cloud';
    expect(await world.run('orphans', 'delete', 'cloud')).toMatchObject({ code: 1 });
    expect(left()).toHaveLength(8);
    world.answer = 'cloud 2';
    const { code, out } = await world.run('orphans', 'delete', 'cloud');
    expect(world.questions.at(-1)).toContain('2 resources of provider cloud');
    expect([code, out.noted]).toEqual([0, expect.stringContaining('2 resources of provider cloud are deleted')]);
    expect(left()).toEqual(['used', ...LOOKALIKES]);
  });

  it('deletes only those that are named, and without a question if forced', async () => {
    await fillCloud();
    const { code, out } = await world.run('orphans', 'delete', 'cloud', '--force', '--id', 'orphan-2', 'used');
    expect([code, out.noted]).toEqual([1, expect.stringContaining('that have these ids: used; see')]);
    expect(left()).toEqual(['used', 'orphan-1', ...LOOKALIKES]);
    expect(await world.run('orphans', 'delete', 'cloud', '--force', '--id', 'orphan-1')).toMatchObject({ code: 0 });
    expect(left()).toEqual(['used', ...LOOKALIKES]);
    expect(await world.run('orphans', 'delete')).toMatchObject({ code: 2 });
  });

  it.each(['delete', 'adopt'])('refuses to %s what does not exist', async (action) => {
    await fillCloud();
    const force = action === 'delete' ? ['--force'] : [];
    for (const id of ['used', '12', 'no-such', 'other-installation']) {
      const { code, out } = await world.run('orphans', action, 'cloud', '--id', id, ...force);
      expect([code, out.noted]).toEqual([1, expect.stringContaining(`that have these ids: ${id}; see`)]);
    }
    expect(left()).toHaveLength(8);
    expect([...world.store.nodes.inState('hold')]).toEqual([]);
  });

  it.each([
    ['list', '--id', 'orphan-1'],
    ['list', '--force'],
    ['list', '--retire-ready'],
    ['adopt', 'cloud', '--force'],
    ['suspend', 'cloud', '--id', 'orphan-1'],
    ['confirm', 'cloud', '--id', 'orphan-1'],
    ['delete', 'cloud', '--force', '--retire-ready'],
  ])('refuses an option that has no effect: %s %s %s', async (...args) => {
    await fillCloud();
    const { code, out } = await world.run('orphans', ...args);
    expect([code, out.noted]).toEqual([2, expect.stringContaining('has no effect on')]);
    expect(left()).toHaveLength(8);
  });

  it('refuses to list a provider that only records name', async () => {
    await world.node({ provider: 'removed' });
    const { code, out } = await world.run('orphans', 'list', 'removed');
    expect([code, out.noted]).toEqual([1, expect.stringContaining('provider removed is not configured')]);
  });

  it('skips resources whose node id no launcher writes', async () => {
    globalThis.toyCloud.resources = ['7', 'abc', '', '00000000007', '000000000x'].map((id, index) =>
      instance(`malformed-${index}`, { nodepool_node_id: id }),
    );
    expect((await world.run('orphans', 'list', '-o', 'name')).out.printed.trim()).toBe('');
    expect(await world.run('orphans', 'delete', 'cloud', '--force')).toMatchObject({ code: 0 });
    expect(left()).toHaveLength(5);
  });

  it('records an instance once that two processes adopt at the same time', async () => {
    await fillCloud();
    let waiting = 0;
    let release: () => void = () => undefined;
    const both = new Promise<void>((resolve) => (release = resolve));
    globalThis.toyCloud.beforeList = () => {
      waiting += 1;
      if (waiting === 2) release();
      return both;
    };
    const processes = [1, 2].map(() => new RunningCli(world, ['orphans', 'adopt', 'cloud']));
    await world.until(() => processes.every(({ code }) => code !== undefined));
    expect(processes.map(({ code }) => code)).toEqual([0, 0]);
    const ids = [...world.store.nodes.inState('hold')].map(({ node }) => node.external_id);
    expect(ids.sort()).toEqual(['orphan-1', 'orphan-2']);
  });

  it('does not delete what gets a record before the deletion', async () => {
    await fillCloud();
    let listings = 0;
    globalThis.toyCloud.beforeList = async () => {
      listings += 1;
      if (listings === 2)
        await world.store.nodes.create([nodeDataWith({ provider: 'cloud', external_id: 'orphan-1' })]);
    };
    const { out } = await world.run('orphans', 'delete', 'cloud', '--force');
    expect(left()).toEqual(['used', 'orphan-1', ...LOOKALIKES]);
    expect(out.noted).toContain('1 were not deleted');
  });

  it('adopts instances as held nodes, which are no orphans any more, nor are their other resources', async () => {
    await fillCloud();
    const volume = { ...instance('orphan-1'), kind: 'volume', externalId: 'volume-1' };
    globalThis.toyCloud.resources.push(volume);
    const { code } = await world.run('orphans', 'adopt', 'cloud', '--id', 'orphan-1');
    expect(code).toBe(0);
    expect([...world.store.nodes.inState('hold')].map(({ node }) => node)).toMatchObject([
      {
        provider: 'cloud',
        pool: 'main',
        external_id: 'orphan-1',
        comment: expect.stringContaining('0000000007'),
        progress: { attempt: instance('orphan-1').tags.nodepool_launch_attempt },
      },
    ]);
    const { out } = await world.run('orphans', 'list', '-o', 'name');
    expect(out.printed.trim()).toBe('cloud/orphan-2');
  });

  it('adopts no instance that is being deleted', async () => {
    const leaving = { ...instance('leaving'), deleted: true };
    globalThis.toyCloud.resources = [leaving, instance('orphan-1')];
    expect(await world.run('orphans', 'adopt', 'cloud')).toMatchObject({ code: 0 });
    expect([...world.store.nodes.inState('hold')].map(({ node }) => node.external_id)).toEqual(['orphan-1']);
  });

  it('fails if it could not list the resources of a provider', async () => {
    globalThis.toyCloud.beforeList = () => Promise.reject(new Error('the cloud is closed'));
    const { code, out } = await world.run('orphans', 'list');
    expect(code).toBe(1);
    expect(out.noted).toContain('provider cloud: the cloud is closed');
  });

  it('suspends deletions, retires ready nodes, and confirms', async () => {
    const ready = await world.node({ state: 'ready', provider: 'cloud' });
    const used = await world.node({ state: 'in-use', provider: 'cloud' });
    const booting = await world.node({ state: 'building', provider: 'cloud' });
    expect(await world.run('orphans', 'suspend', '--retire-ready')).toMatchObject({ code: 0 });
    await world.until(() => world.store.nodes.get(ready)?.node.state === 'used');
    expect(world.store.nodes.get(used)?.node.state).toBe('in-use');
    expect(world.store.nodes.get(booting)?.node.state).toBe('aborted');
    expect(world.store.suspensions.all()).toMatchObject([{ provider: null }]);
    expect(await world.run('orphans', 'confirm', 'cloud', '--force')).toMatchObject({ code: 1 });
    expect((await world.run('doctor')).out.printed).toContain('deletions of resources without a record are suspended');
    expect(await world.run('orphans', 'confirm')).toMatchObject({ code: 1 });
    world.answer = 'confirm';
    expect(await world.run('orphans', 'confirm')).toMatchObject({ code: 0 });
    await world.until(() => world.store.suspensions.all().length === 0);
    expect((await world.run('orphans', 'confirm')).out.noted).toContain('no deletions are suspended');
  });

  it('retires nodes whose locks end with the sessions of a restored state, and names those that stay locked', async () => {
    const expiring = await world.node({ state: 'ready', provider: 'cloud' });
    const staying = await world.node({ state: 'building', provider: 'cloud' });
    const taken = await world.node({ state: 'ready', provider: 'cloud' });
    const lock = async (id: string): Promise<NodeHandle> => (await world.finish(world.store.nodes.tryLock(id)))!;
    const handles = [await lock(expiring), await lock(staying), await lock(taken)] as const;
    const running = world.cli('orphans', 'suspend', '--retire-ready');
    await world.until(() => running.out.noted.includes('3 nodes are locked; waiting up to 60 s'));
    await world.clock.advance(20_000);
    await world.finish(handles[0].release());
    await world.finish(handles[2].release({ state: 'in-use' }));
    await world.until(() => world.stateOf(expiring) === 'used');
    expect(running.code).toBeUndefined();
    await world.clock.advance(60_000);
    expect(running.code).toBe(1);
    expect(running.out.noted).toContain('1 ready nodes and 0 launches are retired');
    expect(running.out.noted).toContain(`locked by running programs, and are not retired: ${staying}`);
    expect([world.stateOf(staying), world.stateOf(taken)]).toEqual(['building', 'in-use']);
  });

  it('names the owners of nodes that are leased durably, and does not wait for them', async () => {
    const leased = await world.node({ state: 'ready', provider: 'cloud' });
    const free = await world.node({ state: 'ready', provider: 'cloud' });
    await world.finish(world.store.nodes.tryLockAll([{ id: leased }], { owner: 'gateway-1' }));
    const { code, out } = await world.run('orphans', 'suspend', '--retire-ready');
    expect(code).toBe(1);
    expect(out.noted).toContain(`these nodes are leased durably, and are not retired: ${leased} (gateway-1)`);
    expect(out.noted).not.toContain('waiting up to');
    expect([world.stateOf(leased), world.stateOf(free)]).toEqual(['ready', 'used']);
  });

  it('retires nodes whose lease ends in the meantime, or whose lock cannot be read at first', async () => {
    const leased = await world.node({ state: 'ready', provider: 'cloud' });
    const unread = await world.node({ state: 'ready', provider: 'cloud' });
    const lease = (await world.finish(world.store.nodes.tryLockAll([{ id: leased }], { owner: 'gateway-1' })))![0]!;
    const other = (await world.finish(world.store.nodes.tryLock(unread)))!;
    // The command has a store of its own.
    const stores = Object.getPrototypeOf(world.store.nodes) as typeof world.store.nodes;
    const { holder } = stores;
    const read = jest.spyOn(stores, 'holder').mockImplementation(async function (this: typeof stores, id, options) {
      if (id === unread) throw new Error('the lock cannot be read');
      const found = await holder.call(this, id, options);
      await lease.release();
      return found;
    });
    const running = world.cli('orphans', 'suspend', '--retire-ready');
    await world.until(() => running.out.noted.includes('1 nodes are locked'));
    await world.finish(other.release());
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
    expect([world.stateOf(leased), world.stateOf(unread)]).toEqual(['used', 'used']);
    read.mockRestore();
  });

  it('stops at an interruption while it waits for locks, and leaves no lock of its own', async () => {
    const node = await world.node({ state: 'ready', provider: 'cloud' });
    const handle = (await world.finish(world.store.nodes.tryLock(node)))!;
    const running = world.cli('orphans', 'suspend', '--retire-ready');
    await world.until(() => running.out.noted.includes('1 nodes are locked'));
    running.interrupt();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
    expect(running.out.noted).toContain('interrupted');
    expect(running.out.noted).not.toContain('locked by running programs');
    await world.finish(handle.release());
    await world.clock.advance(1000);
    expect(world.stateOf(node)).toBe('ready');
    expect([...world.server.dump().keys()].filter((path) => path.includes('__lock__'))).toEqual([]);
  });

  it('retires the other nodes if a locked one vanishes meanwhile', async () => {
    const vanishing = await world.node({ state: 'ready', provider: 'cloud' });
    const other = await world.node({ state: 'ready', provider: 'cloud' });
    const lock = async (id: string): Promise<NodeHandle> => (await world.finish(world.store.nodes.tryLock(id)))!;
    const handles = [await lock(vanishing), await lock(other)] as const;
    const running = world.cli('orphans', 'suspend', '--retire-ready');
    await world.until(() => running.out.noted.includes('2 nodes are locked'));
    await world.clock.advance(1000);
    // Python launchers delete a node with the contenders for its lock.
    const python = world.server.connect();
    for (const path of [...world.server.dump().keys()].reverse())
      if (`${path}/`.startsWith(`/nodepool/nodes/${vanishing}/`)) await world.finish(python.delete(path));
    await world.finish(python.close());
    await world.finish(handles[1].release());
    await world.clock.advance(61_000);
    expect(running.out.noted).toContain('1 ready nodes and 0 launches are retired');
    expect(running.code).toBe(0);
    expect([world.stateOf(vanishing), world.stateOf(other)]).toEqual([undefined, 'used']);
  });

  it('suspends the deletions of one provider, and retires its nodes only', async () => {
    const own = await world.node({ state: 'ready', provider: 'cloud' });
    const other = await world.node({ state: 'ready', provider: 'another' });
    expect(await world.run('orphans', 'suspend', 'cloud', '--retire-ready')).toMatchObject({ code: 0 });
    await world.until(() => world.store.nodes.get(own)?.node.state === 'used');
    expect(world.store.nodes.get(other)?.node.state).toBe('ready');
    expect(world.store.suspensions.all()).toMatchObject([{ provider: 'cloud' }]);
    await world.store.suspensions.suspend('another', 'a test');
    await world.until(() => world.store.suspensions.all().length === 2);
    expect(await world.run('orphans', 'confirm', 'cloud', '--force')).toMatchObject({ code: 0 });
    await world.until(() => world.store.suspensions.all().length < 2);
    expect(world.store.suspensions.all()).toMatchObject([{ provider: 'another' }]);
  });

  it('does not delete another orphan that has got the id of a chosen one', async () => {
    await fillCloud();
    let listings = 0;
    globalThis.toyCloud.beforeList = async () => {
      listings += 1;
      if (listings !== 2) return;
      const { resources } = globalThis.toyCloud;
      const index = resources.findIndex(({ externalId }) => externalId === 'orphan-1');
      const tags = { nodepool_node_id: '0000000009', nodepool_launch_attempt: 'f'.repeat(32) };
      resources[index] = instance('orphan-1', tags);
    };
    await world.run('orphans', 'delete', 'cloud', '--id', 'orphan-1', '--force');
    expect(left()).toContain('orphan-1');
  });
});
