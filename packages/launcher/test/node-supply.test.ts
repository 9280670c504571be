/** Tests of static machines, as seen in ZooKeeper. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import {
  asText,
  change,
  host,
  hostKeys,
  KEY,
  newWorld,
  rack,
  ready,
  scans,
  slotOf,
  slots,
  start,
  untilReady,
  world,
} from './support/static-world.js';
import { REQUESTS, pool, provider } from './support/world.js';

const MINUTE_MS = 60_000;
const SEEDS = [1, 2, 3, 4, 5];

/** Takes a node of the label, and returns how to give it back. */
async function use(labels: readonly string[], options = {}): Promise<{ ids: readonly string[]; end(): Promise<void> }> {
  const id = await world.served(labels, options);
  const taken = await world.during(world.requestor.take(id));
  return { ids: taken.ids, end: () => world.during(world.requestor.giveBack(taken)) };
}

describe('a static machine', () => {
  it('stays ready although no request needs it', async () => {
    const label = { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxIdleMs: MINUTE_MS, maxWaitMs: Infinity };
    await start({ ...rack([host('192.0.2.1', ['small'])]), labels: new Map([['small', label]]) });
    await untilReady('192.0.2.1:22/0');
    const before = [...world.nodes().keys()];
    await world.clock.advance(10 * MINUTE_MS);
    expect([...world.nodes().keys()]).toEqual(before);
  });

  it('is registered as one ready node per slot, with the fields that the Python Nodepool writes', async () => {
    const nodes = [host('192.0.2.1', ['small', 'other'], { 'max-parallel-jobs': 2, 'host-key': KEY, username: 'ci' })];
    await start(rack(nodes, { 'node-attributes': { rack: 'r1' } }));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1');
    const [first] = [...world.nodes().values()];
    expect(first).toEqual({
      allocated_to: null,
      attributes: { rack: 'r1' },
      az: null,
      cloud: null,
      comment: null,
      connection_port: 22,
      connection_type: 'ssh',
      created_time: expect.any(Number),
      driver_data: null,
      external_id: '192.0.2.1',
      hold_expiration: null,
      hold_job: null,
      host_id: null,
      host_keys: [KEY],
      hostname: '192.0.2.1',
      image_id: null,
      interface_ip: '192.0.2.1',
      launcher: 'static driver',
      pool: 'main',
      private_ipv4: null,
      provider: 'rack',
      public_ipv4: '192.0.2.1',
      public_ipv6: null,
      python_path: 'auto',
      region: null,
      requestor: null,
      resources: null,
      shell_type: null,
      slot: 0,
      ssh_port: 22,
      state: 'ready',
      state_time: expect.any(Number),
      tenant_name: null,
      type: ['small', 'other'],
      user_data: null,
      username: 'ci',
    });
  });

  it('serves requests for each of its labels, and is registered again after each use', async () => {
    await start(rack([host('192.0.2.1', ['small', 'other'])]));
    await untilReady('192.0.2.1:22/0');
    for (const label of ['small', 'other', 'small']) {
      const { ids, end } = await use([label], { tenant: 'acme', requestor: 'zuul' });
      expect(world.nodes().get(ids[0] ?? '')).toMatchObject({
        state: 'in-use',
        tenant_name: 'acme',
        requestor: 'zuul',
      });
      await end();
      await untilReady('192.0.2.1:22/0');
    }
    expect(world.nodes().size).toBe(1);
  });

  it.each(SEEDS)('is registered once per slot by two launchers (seed %i)', async (seed) => {
    await world.end();
    newWorld(seed, 5);
    const nodes = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((name) =>
      host(name, ['small'], { 'max-parallel-jobs': 2 }),
    );
    const all = nodes.flatMap(({ name }) => [`${asText(name)}:22/0`, `${asText(name)}:22/1`]);
    let doubled: string[] = [];
    world.server.onCommit(() => {
      const now = slots();
      if (new Set(now).size < now.length) doubled = now;
    });
    const first = await start(rack(nodes), 'launcher1');
    await start(rack(nodes), 'launcher2');
    await untilReady(...all);
    const uses = await Promise.all([use(['small', 'small', 'small'])]);
    world.server.partition(first.zk);
    for (const { end } of uses) await end();
    await untilReady(...all);
    world.server.heal(first.zk);
    const again = await use(['small', 'small']);
    await again.end();
    await untilReady(...all);
    await world.clock.advance(MINUTE_MS);
    expect(doubled).toEqual([]);
    expect(ready()).toEqual(all);
  });

  it('is registered with all its slots although its records exceed the size of one transaction', async () => {
    const large = { 'node-attributes': { notes: 'x'.repeat(20_000) } };
    await start(rack([host('192.0.2.1', ['small'], { 'max-parallel-jobs': 70 })], large));
    await world.until('all slots are ready', () => ready().length === 70);
  });

  it('is not registered by a provider that was stopped while ZooKeeper was unreachable', async () => {
    const nodes = [host('192.0.2.1', ['small'])];
    hostKeys.set('192.0.2.1', []);
    const first = await start(rack(nodes), 'launcher1');
    await start(rack(nodes), 'launcher2');
    world.server.partition(first.zk, 'silent');
    hostKeys.clear();
    await untilReady('192.0.2.1:22/0');
    const changed = first.launcher.apply(world.config([], rack([host('192.0.2.1', ['small', 'other'])])));
    await world.clock.advance(1000);
    world.server.heal(first.zk);
    await world.during(changed);
    await world.clock.advance(MINUTE_MS);
    expect(ready()).toEqual(['192.0.2.1:22/0']);
  });

  it('recognizes nodes that a Python Nodepool has registered, with and without a slot', async () => {
    const theirs = (name: string, slot: number | null): Buffer =>
      Buffer.from(
        JSON.stringify({
          state: 'ready', state_time: 1, created_time: 1, provider: 'rack', pool: 'main', launcher: 'static driver',
          type: ['small'], external_id: name, hostname: name, interface_ip: name, username: 'zuul', connection_port: 22,
          ssh_port: 22, connection_type: 'ssh', python_path: 'auto', host_keys: [KEY], public_ipv4: name, slot, theirs: 1, allocated_to: null,
        }),
      ); // prettier-ignore
    const launcher = await start(rack([]));
    const zk = world.server.connect();
    for (const [name, slot] of [
      ['192.0.2.1', 1],
      ['192.0.2.2', null],
    ] as const) {
      await world.during(zk.create('/nodepool/nodes/', theirs(name, slot), { mode: 'persistent-sequential' }));
    }
    await world.during(zk.close());
    const nodes = ['192.0.2.1', '192.0.2.2'].map((name) => host(name, ['small'], { 'max-parallel-jobs': 2 }));
    await change(launcher, rack(nodes));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1', '192.0.2.2:22/0', '192.0.2.2:22/1');
    expect([...world.nodes().values()].filter((node) => node.theirs === 1).map(slotOf)).toEqual([
      '192.0.2.1:22/1',
      '192.0.2.2:22/0',
    ]);
  });

  it('ignores instances of clouds with the same name, user and port', async () => {
    const launcher = await start(rack([]));
    const zk = world.server.connect();
    const record = {
      ...{ state: 'hold', provider: 'cloud', pool: 'main', launcher: 'launcher9-1-1', type: ['small'], slot: null },
      ...{ external_id: '192.0.2.1', hostname: '192.0.2.1', username: 'zuul', connection_port: 22 },
    };
    await world.during(
      zk.create('/nodepool/nodes/', Buffer.from(JSON.stringify(record)), { mode: 'persistent-sequential' }),
    );
    await world.during(zk.close());
    await change(launcher, rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const { end } = await use(['small']);
    await end();
    await untilReady('192.0.2.1:22/0');
    expect([...world.nodes().values()]).toContainEqual(expect.objectContaining({ provider: 'cloud', state: 'hold' }));
  });

  it('ignores nodes of the same provider that another driver created', async () => {
    const launcher = await start(rack([]));
    const zk = world.server.connect();
    const record = {
      state: 'ready',
      provider: 'rack',
      pool: 'main',
      type: ['small'],
      hostname: 'n1',
      external_id: 'uuid',
    };
    await world.during(
      zk.create('/nodepool/nodes/', Buffer.from(JSON.stringify(record)), { mode: 'persistent-sequential' }),
    );
    await world.during(zk.close());
    await change(launcher, rack([host('192.0.2.1', ['small'])]));
    await world.until('its node is there', () => world.nodes().size === 2);
    await world.clock.advance(5 * MINUTE_MS);
    expect([...world.nodes().values()]).toContainEqual(expect.objectContaining({ hostname: 'n1', state: 'ready' }));
  });
});

describe('a request for static machines', () => {
  it('waits while all slots are busy', async () => {
    await start(rack([host('192.0.2.1', ['small']), host('192.0.2.2', ['other'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    const first = await use(['small']);
    const waiting = await world.submit(['small']);
    await world.served(['other']);
    await world.clock.advance(30 * MINUTE_MS);
    expect(world.records(REQUESTS).get(waiting)).toMatchObject({ state: 'requested' });
    expect(world.records(REQUESTS).get(waiting)?.declined_by ?? []).toEqual([]);
    await first.end();
    await world.fulfilled(waiting);
  });

  it('waits for more nodes than are free, and is not starved by requests for one', async () => {
    await start(rack([host('192.0.2.1', ['small'], { 'max-parallel-jobs': 2 }), host('192.0.2.2', ['small'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1', '192.0.2.2:22/0');
    const uses = [await use(['small']), await use(['small'])];
    const large = await world.submit(['small', 'small', 'small']);
    await world.clock.advance(2 * MINUTE_MS);
    const later = await world.submit(['small']);
    await world.clock.advance(2 * MINUTE_MS);
    expect([world.stateOf(large), world.stateOf(later)]).toEqual(['requested', 'requested']);
    for (const { end } of uses) await end();
    expect(await world.fulfilled(large)).toHaveLength(3);
    expect(world.stateOf(later)).toBe('requested');
  });

  it('gets a machine of two labels for the label that no other machine has', async () => {
    await start(rack([host('192.0.2.1', ['small', 'other']), host('192.0.2.2', ['small'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    const nodes = await world.fulfilled(await world.submit(['small', 'other']));
    expect(nodes.map((id) => world.nodes().get(id)?.hostname)).toEqual(['192.0.2.2', '192.0.2.1']);
  });

  it('does not block the limit of its tenant while it waits for nodes', async () => {
    const section = provider('demo', [pool('main', ['large'])]);
    const cloud = world.config([section]);
    const machines = rack([host('192.0.2.1', ['small']), host('192.0.2.2', ['small'])]);
    await start({
      providers: new Map([...cloud.providers, ...(machines.providers ?? [])]),
      loadedDrivers: new Map([...cloud.loadedDrivers, ...(machines.loadedDrivers ?? [])]),
      tenantLimits: new Map([['bounded', { instances: 2 }]]),
    });
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    const first = await use(['large'], { tenant: 'bounded' });
    const waiting = await world.submit(['small', 'small'], { tenant: 'bounded' });
    await world.clock.advance(5000);
    const others = await use(['small'], { tenant: 'other' });
    await world.clock.advance(2 * MINUTE_MS);
    await first.end();
    await world.served(['large', 'large'], { tenant: 'bounded' });
    expect(world.stateOf(waiting)).toBe('requested');
    await others.end();
  });

  it.each([
    [['small', 'small'], 'more nodes than there are slots'],
    [['small', 'other'], 'more nodes than the labels have together'],
  ])('is declined if it requests %j: %s', async (labels) => {
    await start(rack([host('192.0.2.1', ['small', 'other'])]));
    const id = await world.submit(labels);
    await world.inState(id, 'failed');
  });

  it('is declined if it requests new nodes', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const id = await world.submit(['small'], { reuse: false });
    await world.inState(id, 'failed');
    expect(ready()).toEqual(['192.0.2.1:22/0']);
  });
});

describe('a changed configuration', () => {
  it('applies to ready nodes at once, and to used ones when they are returned', async () => {
    const launcher = await start(rack([host('192.0.2.1', ['small']), host('192.0.2.2', ['small'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    const { ids, end } = await use(['small']);
    const [used = ''] = ids;
    const [kept = ''] = [...world.nodes().keys()].filter((id) => id !== used);
    const before = world.nodes().get(used);
    const after = ['192.0.2.1', '192.0.2.2'].map((name) => host(name, ['other', 'large'], { 'shell-type': 'sh' }));
    await change(launcher, rack(after));
    const isChanged = (id: string): boolean => asText(world.nodes().get(id)?.type) === '["other","large"]';
    await world.until('the ready node is changed', () => isChanged(kept));
    expect(world.nodes().get(kept)).toMatchObject({ state: 'ready', shell_type: 'sh' });
    expect(world.nodes().get(used)).toEqual(before);
    await end();
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    expect([...world.nodes().keys()].every(isChanged)).toBe(true);
  });

  it('replaces nodes whose port has changed, each when it is free', async () => {
    const launcher = await start(rack([host('192.0.2.1', ['small'], { 'max-parallel-jobs': 2 })]));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1');
    const { end } = await use(['small']);
    const port = { 'max-parallel-jobs': 2, 'connection-port': 2222, username: 'ci' };
    await change(launcher, rack([host('192.0.2.1', ['small'], port)]));
    await untilReady('192.0.2.1:2222/1');
    await world.clock.advance(5 * MINUTE_MS);
    expect(slots()).toEqual(['192.0.2.1:22/0', '192.0.2.1:2222/1']);
    await end();
    await untilReady('192.0.2.1:2222/0', '192.0.2.1:2222/1');
  });

  it('deletes nodes of removed machines and slots, and keeps those in use', async () => {
    const two = { 'max-parallel-jobs': 2 };
    const launcher = await start(rack([host('192.0.2.1', ['small'], two), host('192.0.2.2', ['other'], two)]));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1', '192.0.2.2:22/0', '192.0.2.2:22/1');
    const { ids, end } = await use(['other']);
    const inUse = world.nodes().get(ids[0] ?? '');
    await change(launcher, rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(ids[0] ?? '')).toEqual(inUse);
    await end();
    await world.until('it is removed', () => world.nodes().size === 1);
    await world.clock.advance(5 * MINUTE_MS);
    expect(slots()).toEqual(['192.0.2.1:22/0']);
  });

  it('that moves a machine to another provider registers its slots when the nodes of the former one are deleted', async () => {
    const machine = host('192.0.2.1', ['small'], { 'max-parallel-jobs': 2 });
    await start(rack([machine]), 'launcher1');
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1');
    const { ids, end } = await use(['small']);
    const inUse = world.nodes().get(ids[0] ?? '');
    // One launcher has the machine in both providers for a while.
    await start(rack([machine], {}, 'moved'), 'launcher2');
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.nodes().get(ids[0] ?? '')).toEqual(inUse);
    const others = [...world.nodes().values()].filter(({ provider: of }) => of === 'moved');
    expect(others.map(({ slot }) => slot)).toEqual([inUse?.slot === 0 ? 1 : 0]);
    await end();
    const isMoved = ({ provider: of }: JsonObject): boolean => of === 'moved';
    await world.until('all slots are registered', () => slots(isMoved).join() === '192.0.2.1:22/0,192.0.2.1:22/1');
  });

  it('that moves a machine in use to another provider registers its slots when it is returned', async () => {
    const nodes = [host('192.0.2.1', ['small'])];
    const launcher = await start(rack(nodes));
    await untilReady('192.0.2.1:22/0');
    const { ids, end } = await use(['small']);
    await change(launcher, rack(nodes, {}, 'rack2'));
    await world.clock.advance(5 * MINUTE_MS);
    expect([...world.nodes().keys()]).toEqual(ids);
    await end();
    await untilReady('192.0.2.1:22/0');
    // No launcher serves the former provider, so its node is not deleted.
    const left = [...world.nodes().values()].map(({ provider: of, state }) => `${asText(of)} ${asText(state)}`);
    expect(left).toEqual(['rack used', 'rack2 ready']);
  });

  it('on only one of two launchers does not make them revert each other’s nodes', async () => {
    const old = [host('192.0.2.1', ['small'])];
    await start(rack(old), 'launcher1');
    const second = await start(rack(old), 'launcher2');
    await untilReady('192.0.2.1:22/0');
    await change(second, rack([host('192.0.2.1', ['other']), host('192.0.2.2', ['other'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    const ids = [...world.nodes().keys()];
    await world.clock.advance(30 * MINUTE_MS);
    expect([...world.nodes().keys()]).toEqual(ids);
    expect([...world.nodes().values()].map(({ type }) => type)).toEqual([['other'], ['other']]);
  });
});

describe('a machine out of service', () => {
  it('has no ready nodes until it answers again', async () => {
    await start(rack([host('192.0.2.1', ['small'], { 'host-key': KEY }), host('192.0.2.2', ['small'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    hostKeys.set('192.0.2.1', ['ssh-ed25519 BBBB']);
    hostKeys.set('192.0.2.2', []);
    await untilReady();
    const id = await world.submit(['small']);
    await world.clock.advance(30 * MINUTE_MS);
    expect(world.stateOf(id)).toBe('requested');
    hostKeys.clear();
    await world.fulfilled(id);
    await untilReady('192.0.2.2:22/0');
  });

  it('is checked with backoff', async () => {
    hostKeys.set('192.0.2.1', []);
    await start(rack([host('192.0.2.1', ['small'])]));
    scans.length = 0;
    await world.clock.advance(60 * MINUTE_MS);
    expect(scans.length).toBeGreaterThan(25);
    expect(scans.length).toBeLessThan(80);
  });

  it('is detected before one of its nodes is allocated', async () => {
    await start(rack([host('192.0.2.1', ['small']), host('192.0.2.2', ['small'])]));
    await untilReady('192.0.2.1:22/0', '192.0.2.2:22/0');
    await world.clock.advance(10_000);
    hostKeys.set('192.0.2.1', []);
    const nodes = await world.fulfilled(await world.submit(['small']));
    expect(nodes.map((id) => world.nodes().get(id)?.hostname)).toEqual(['192.0.2.2']);
    await untilReady();
  });

  it('does not affect the use of its nodes, and is not registered after the use', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const { ids, end } = await use(['small']);
    hostKeys.set('192.0.2.1', []);
    const inUse = world.nodes().get(ids[0] ?? '');
    await world.clock.advance(30 * MINUTE_MS);
    expect(world.nodes().get(ids[0] ?? '')).toEqual(inUse);
    await end();
    await world.until('it is removed', () => world.nodes().size === 0);
    await world.clock.advance(30 * MINUTE_MS);
    expect(world.nodes().size).toBe(0);
    hostKeys.clear();
    await untilReady('192.0.2.1:22/0');
  });

  it('with changed host keys gets the new ones if none are configured', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    hostKeys.set('192.0.2.1', ['ssh-rsa CCCC']);
    await world.until(
      'the node has them',
      () => asText([...world.nodes().values()][0]?.host_keys) === '["ssh-rsa CCCC"]',
    );
    expect(ready()).toEqual(['192.0.2.1:22/0']);
  });
});
