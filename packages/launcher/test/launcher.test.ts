/** Tests of a launcher as requestors and operators see it, in ZooKeeper and the cloud. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { KeyScanError, type JsonObject } from '@nodepool/core';
import { readCloudSettings } from '@nodepool/driver-example';
import { REQUESTS, World, pool, provider } from './support/world.js';

const NO_FAULTS = readCloudSettings({}).faults;

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (more = {}, poolMore = {}): ReturnType<typeof provider> =>
  provider('demo', [pool('main', ['small', 'large'], poolMore)], more);

describe('a launcher', () => {
  it('publishes the labels of its pools in the registry', async () => {
    await world.launcher([demo()]);
    const [component] = world.records('/nodepool/components/pool').values();
    expect(component).toMatchObject({
      kind: 'pool',
      state: 'running',
      name: 'main',
      provider_name: 'demo',
      supported_labels: ['small', 'large'],
      paused: false,
      priority: 100,
      model_api: 0,
    });
    expect(component?.id).toMatch(/^launcher1-PoolWorker\.demo-main-[0-9a-f]{32}$/);
    expect([...world.records('/nodepool/components/launcher').values()]).toMatchObject([{ kind: 'launcher' }]);
  });

  it('releases a node that is ready, unlocked and allocated to the request', async () => {
    await world.launcher([demo()]);
    const id = await world.submit(['small']);
    const [node] = await world.fulfilled(id);
    expect(world.nodes().get(node!)).toMatchObject({
      state: 'ready',
      type: ['small'],
      allocated_to: id,
      provider: 'demo',
      pool: 'main',
      username: 'root',
      connection_type: 'ssh',
      resources: { instances: 1 },
      tenant_name: 'tenant',
      requestor: 'zuul',
    });
    expect(world.lockHolders()).toEqual([]);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  it('preserves fields that the requestor wrote into the request', async () => {
    await world.launcher([demo()]);
    const written = { requestor_data: { build_set_uuid: 'b' }, span_info: { trace: 1 } };
    const id = await world.during(world.requestor.put(['small'], written));
    await world.fulfilled(id);
    expect(world.records(REQUESTS).get(id)).toMatchObject({
      span_info: { trace: 1 },
      requestor_data: { build_set_uuid: 'b' },
      event_id: 'event',
    });
  });

  it('releases several nodes in the order of the labels', async () => {
    await world.launcher([demo()]);
    const nodes = await world.fulfilled(await world.submit(['small', 'large', 'small']));
    expect(nodes.map((node) => world.nodes().get(node)?.type)).toEqual([['small'], ['large'], ['small']]);
    expect(new Set(nodes).size).toBe(3);
  });

  it('deletes a returned node in the cloud and then in ZooKeeper', async () => {
    await world.launcher([demo()]);
    const id = await world.served(['small', 'small']);
    const taken = await world.during(world.requestor.take(id));
    expect(world.cloud.existingInstances()).toHaveLength(2);
    await world.during(world.requestor.giveBack(taken));
    await world.until('the nodes are gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
    await world.until('the lock of the request is gone', () => world.records('/nodepool/requests-lock').size === 0);
  });

  it('does not change nodes that a requestor holds locked', async () => {
    await world.launcher([demo()]);
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(3_600_000);
    expect(world.nodes().get(taken.ids[0]!)).toMatchObject({ state: 'in-use' });
    await world.during(world.requestor.giveBack(taken));
  });

  it('deletes the nodes of a requestor that died', async () => {
    await world.launcher([demo()]);
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.during(world.requestor.die(taken));
    await world.until('the node is gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('never treats its own new launch as abandoned', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      await world.end();
      world = new World(seed, (random) => Math.floor(random.next() * 5));
      await world.launcher([demo()]);
      const deleted = new Set<string>();
      world.server.onCommit(() => {
        for (const [id, { state }] of world.nodes()) if (state === 'deleting') deleted.add(id);
      });
      for (const id of await world.submitEach(5, ['small'])) await world.fulfilled(id);
      expect([...deleted]).toEqual([]);
    }
  });

  it('fails a request for an unknown label', async () => {
    await world.launcher([demo()]);
    const id = await world.submit(['small', 'unheard-of']);
    await world.inState(id, 'failed');
    expect(world.records(REQUESTS).get(id)?.declined_by).toHaveLength(1);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('fails a request that is larger than the limit of its pool', async () => {
    await world.launcher([demo({}, { 'max-servers': 2 })]);
    const id = await world.submit(['small', 'small', 'small']);
    await world.inState(id, 'failed');
  });

  it('fails a request whose records exceed the size of a ZooKeeper transaction', async () => {
    await world.launcher([demo({}, { 'node-attributes': { text: 'x'.repeat(100_000) } })]);
    const id = await world.submit(Array.from({ length: 11 }, () => 'small'));
    await world.inState(id, 'failed');
    await world.served(['small']);
  });

  it('never exceeds max-servers, and serves all requests', async () => {
    await world.launcher([demo({}, { 'max-servers': 2 })]);
    const ids = await world.submitEach(5, ['small']);
    for (let served = 0; served < ids.length; served += 1) {
      await world.until('another request is fulfilled', () => ids.some((id) => world.stateOf(id) === 'fulfilled'));
      expect(world.nodes().size).toBeLessThanOrEqual(2);
      const next = ids.find((id) => world.stateOf(id) === 'fulfilled')!;
      await world.giveBack(next);
    }
    await world.until('all nodes are gone', () => world.nodes().size === 0);
  });

  it('serves by priority, then relative priority, then age', async () => {
    await world.launcher([demo({}, { 'max-servers': 1 })]);
    const blocker = await world.served(['small']);
    const late = await world.submit(['small'], { priority: 300 });
    const low = await world.submit(['small'], { relativePriority: 5 });
    const first = await world.submit(['small'], { relativePriority: 1 });
    const second = await world.submit(['small'], { relativePriority: 1 });
    const high = await world.submit(['small'], { priority: 100 });
    let holding = blocker;
    for (const expected of [high, first, second, low, late]) {
      await world.giveBack(holding);
      await world.fulfilled(expected);
      holding = expected;
    }
  });

  it('applies a relative priority that changes while the request waits', async () => {
    await world.launcher([demo({}, { 'max-servers': 1 })]);
    const blocker = await world.served(['small']);
    const first = await world.submit(['small']);
    const second = await world.submit(['small']);
    await world.during(world.requestor.change(`/nodepool/requests/${second}`, { relative_priority: -1 }));
    await world.giveBack(blocker);
    await world.fulfilled(second);
    expect(world.stateOf(first)).toBe('requested');
  });

  it('frees ready nodes of a deleted request, and allocates them to the next one', async () => {
    await world.launcher([demo()]);
    const id = await world.submit(['small']);
    const nodes = await world.fulfilled(id);
    await world.during(world.requestor.withdraw(id));
    await world.until('the node is free', () => world.nodes().get(nodes[0]!)?.allocated_to === null);
    expect(await world.fulfilled(await world.submit(['small']))).toEqual(nodes);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  it('launches new nodes for a request that refuses ready ones', async () => {
    await world.launcher([demo()]);
    const id = await world.submit(['small']);
    const nodes = await world.fulfilled(id);
    await world.during(world.requestor.withdraw(id));
    await world.until('the node is free', () => world.nodes().get(nodes[0]!)?.allocated_to === null);
    expect(await world.fulfilled(await world.submit(['small'], { reuse: false }))).not.toEqual(nodes);
  });

  it('stops launching for a withdrawn request, and leaves no nodes', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    await world.launcher([demo()]);
    const id = await world.submit(['small', 'small']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    await world.during(world.requestor.withdraw(id));
    await world.until('the nodes are gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('prefers the pool with the higher priority', async () => {
    const pools = [pool('second', ['small'], { priority: 200 }), pool('first', ['small'], { priority: 50 })];
    await world.launcher([provider('demo', pools)]);
    const [node] = await world.fulfilled(await world.submit(['small']));
    expect(world.nodes().get(node!)?.pool).toBe('first');
  });

  it('leaves a request to the provider that it names, and serves it when that does not exist', async () => {
    await world.launcher([provider('a', [pool('main', ['small'])]), provider('b', [pool('main', ['small'])])]);
    for (const name of ['a', 'b', 'a']) {
      const [node] = await world.fulfilled(await world.submit(['small'], { provider: name, reuse: false }));
      expect(world.nodes().get(node!)?.provider).toBe(name);
    }
    await world.served(['small'], { provider: 'no-such-provider' });
  });
});

describe('a failed launch', () => {
  it('is retried, and its resources are deleted', async () => {
    world.cloud.configure({ faults: { ...NO_FAULTS, 'create-errors': 1 } });
    await world.launcher([demo({ 'launch-retries': 5 })]);
    const id = await world.submit(['small']);
    const attempt = (): unknown => (world.nodes().values().next().value?.progress as JsonObject | null)?.['attempt'];
    await world.until('a first attempt is made', () => attempt() !== undefined);
    const first = attempt();
    await world.until('a second attempt is made', () => attempt() !== first);
    world.cloud.configure({ faults: NO_FAULTS });
    await world.fulfilled(id);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  it('declines the request after launch-retries attempts', async () => {
    let logins = 0;
    world.scanner = {
      scan: () => {
        logins += 1;
        return Promise.reject(new KeyScanError('no answer'));
      },
    };
    await world.launcher([demo({ 'launch-retries': 3 }, { 'host-key-checking': true })]);
    const id = await world.submit(['small']);
    await world.inState(id, 'failed');
    expect(logins).toBe(3);
    await world.until('the nodes are gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('frees the ready nodes of the same request', async () => {
    let logins = 0;
    world.scanner = {
      scan: () => {
        logins += 1;
        return logins === 1 ? Promise.resolve(['ssh-rsa A']) : Promise.reject(new KeyScanError('no answer'));
      },
    };
    await world.launcher([demo({ 'launch-retries': 1 }, { 'host-key-checking': true })]);
    const id = await world.submit(['small', 'small']);
    await world.inState(id, 'failed');
    await world.until('one node is left', () => world.nodes().size === 1);
    expect([...world.nodes().values()]).toMatchObject([{ state: 'ready', allocated_to: null }]);
  });

  it('ends at launch-timeout', async () => {
    world.cloud.configure({ bootTimeMs: [1e9, 1e9] });
    await world.launcher([demo({ 'launch-timeout': 30, 'launch-retries': 2 })]);
    const id = await world.submit(['small']);
    const before = world.clock.monotonic();
    await world.inState(id, 'failed');
    expect(world.clock.monotonic() - before).toBeGreaterThanOrEqual(60_000);
    await world.until('the nodes are gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('waits without a failure when the cloud is over quota', async () => {
    world.cloud.configure({ quota: { instances: 1, cores: Infinity, ram: Infinity } });
    await world.launcher([demo()]);
    const first = await world.served(['small']);
    const second = await world.submit(['small']);
    await world.clock.advance(60_000);
    expect(['requested', 'pending']).toContain(world.stateOf(second));
    await world.giveBack(first);
    await world.fulfilled(second);
  });
});

describe('a launcher that stops', () => {
  it('leaves launches for another launcher to resume', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const first = await world.launcher([demo()]);
    const id = await world.submit(['small', 'large']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    const booting = world.cloud.existingInstances().map((instance) => instance.id);
    await first.stop();
    expect(world.stateOf(id)).toBe('pending');
    expect(world.lockHolders()).toEqual([]);
    await world.launcher([demo()], 'launcher2');
    await world.fulfilled(id);
    expect(world.cloud.existingInstances().map((instance) => instance.id)).toEqual(booting);
  });

  it('has a launch continued with an instance that the cloud lists only after it died', async () => {
    world.cloud.configure({ apiLatencyMs: [2000, 2000], listLagMs: [6000, 6000] });
    const first = await world.launcher([demo()]);
    const id = await world.submit(['small']);
    await world.until('the cloud has taken the order', () => world.cloud.existingInstances().length === 1);
    const [ordered] = world.cloud.existingInstances();
    expect([...world.nodes().values()].map((node) => node.external_id)).toEqual([null]);
    await first.stop();
    await world.launcher([demo()], 'launcher2');
    await world.fulfilled(id);
    expect(world.cloud.existingInstances().map((instance) => instance.id)).toEqual([ordered?.id]);
  });

  it('has its work continued by another launcher when it dies', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const first = await world.launcher([demo()]);
    await world.launcher([demo()], 'launcher2');
    const ids = await world.submitEach(4, ['small']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 4);
    world.server.partition(first.zk);
    for (const id of ids) await world.fulfilled(id);
    expect(world.cloud.existingInstances()).toHaveLength(4);
    world.server.heal(first.zk);
  });

  it('abandons all work when its session is lost, and continues it in the next one', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const { zk } = await world.launcher([demo()]);
    const id = await world.submit(['small', 'small']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    world.server.expireSession(zk);
    await world.fulfilled(id);
    expect(world.cloud.existingInstances()).toHaveLength(2);
    expect(world.records('/nodepool/components/pool').size).toBe(1);
  });

  it('resumes a deletion that it had started', async () => {
    await world.launcher([demo()]);
    const id = await world.served(['small']);
    world.cloud.configure({ deleteTimeMs: [30_000, 30_000] });
    await world.giveBack(id);
    await world.until('the deletion runs', () => [...world.nodes().values()].some(({ state }) => state === 'deleting'));
    const { zk } = await world.launcher([demo()], 'launcher2');
    world.server.expireSession(zk);
    await world.until('the node is gone', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });
});

describe('two launchers', () => {
  it('share requests without duplicate work', async () => {
    world.cloud.configure({ bootTimeMs: [1000, 5000] });
    await world.launcher([demo()]);
    await world.launcher([provider('other', [pool('main', ['small'])])], 'launcher2');
    const ids = await world.submitEach(40, ['small']);
    const handed: string[] = [];
    for (const id of ids) handed.push(...(await world.fulfilled(id)));
    expect(new Set(handed).size).toBe(40);
    expect(world.cloud.existingInstances()).toHaveLength(40);
  });
});
