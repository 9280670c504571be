/** Tests of the launcher's clean-up of nodes and requests, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { REQUESTS, pool, provider } from './support/world.js';
import {
  NODES,
  MINUTE_MS,
  world,
  other,
  warnings,
  demo,
  freeNode,
  heldNode,
  readyFor,
} from './support/cleanup-world.js';

describe('a node that has been ready for longer than max-ready-age', () => {
  it('is deleted at that age, not before, and other nodes are kept', async () => {
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

  it('is kept for the request that it is allocated to', async () => {
    await world.launcher([demo()], 'launcher1', readyFor(600));
    const id = await world.submit(['small']);
    const [node = ''] = await world.fulfilled(id);
    await world.clock.advance(1_200_000);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: id });
    await world.during(world.requestor.withdraw(id));
    await world.until('it is deleted', () => !world.nodes().has(node));
  });

  it('is deleted once by any number of launchers, also after a change of the limit', async () => {
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

describe('a ready node that is allocated to a text that no request can have as its id', () => {
  it.each(['', '..', 'a/b'])('becomes free (%j)', async (text) => {
    await world.launcher([demo()], 'launcher1');
    const node = await freeNode();
    await world.during(world.requestor.change(`${NODES}/${node}`, { allocated_to: text }));
    await world.until('it is free', () => world.nodes().get(node)?.allocated_to === null);
    expect(await world.fulfilled(await world.submit(['small']))).toEqual([node]);
  });
});

describe('a held node', () => {
  const hold = (seconds: number): Partial<NodepoolConfig> => ({ maxHoldAgeMs: seconds * 1000 });

  it.each<[string, JsonObject, number]>([
    ['the time that its requestor sets', { hold_expiration: 300 }, 300],
    ['the time that its requestor sets as text', { hold_expiration: '300' }, 300],
    ['max-hold-age, if the requestor sets more', { hold_expiration: 7200 }, 3600],
    ['max-hold-age, if the requestor sets no limit', { hold_expiration: 0 }, 3600],
    ['max-hold-age, if the requestor sets nothing', {}, 3600],
    ['max-hold-age, if the requestor sets a fraction as text', { hold_expiration: '2.5' }, 3600],
    ['max-hold-age, if the requestor sets an exponent as text', { hold_expiration: '1e2' }, 3600],
    ['max-hold-age, if the requestor sets a hexadecimal time', { hold_expiration: '0x20' }, 3600],
    ['max-hold-age, if the requestor sets less than a second', { hold_expiration: 0.5 }, 3600],
    ['the whole seconds that its requestor sets', { hold_expiration: 300.9 }, 300],
    ['the time that its requestor sets as text with spaces', { hold_expiration: ' +300 ' }, 300],
    ['max-hold-age, if the requestor sets an invalid time', { hold_expiration: 'soon' }, 3600],
  ])('is kept for %s', async (_what, change, seconds) => {
    await world.launcher([demo()], 'launcher1', hold(3600));
    const node = await heldNode(change);
    const heldUntil = (Number(world.nodes().get(node)?.state_time) + seconds) * 1000;
    await world.clock.advance(heldUntil - world.clock.now() - 1000);
    expect(world.nodes().get(node)?.state).toBe('hold');
    await world.clock.advance(MINUTE_MS);
    expect(world.nodes().has(node)).toBe(false);
  });

  it('is kept without limit if no limit is configured', async () => {
    await world.launcher([demo()]);
    const node = await heldNode({ hold_expiration: 0 });
    await world.clock.advance(180 * MINUTE_MS);
    expect(world.nodes().get(node)?.state).toBe('hold');
  });

  it('is not changed while it is locked', async () => {
    await world.launcher([demo()], 'launcher1', hold(600));
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    const { ids } = taken;
    await world.during(world.requestor.change(`${NODES}/${ids[0]}`, { state: 'hold', state_time: 0 }));
    await world.clock.advance(1_200_000);
    expect(world.nodes().get(ids[0]!)?.state).toBe('hold');
    await world.during(world.requestor.die(taken));
    await world.until('it is deleted', () => world.nodes().size === 0);
  });
});

describe('a pending request without a lock', () => {
  it('is requeued if no pool accepts it', async () => {
    await world.launcher([demo()]);
    // Another program serves the provider and accepts only `requested` requests.
    await registerPool('elsewhere', ['small']);
    const id = await world.submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    await world.clock.advance(MINUTE_MS / 2);
    expect(world.stateOf(id)).toBe('pending');
    await world.clock.advance(MINUTE_MS);
    expect(world.stateOf(id)).toBe('requested');
    expect(world.records(REQUESTS).get(id)).toMatchObject({ requestor_data: { build_set_uuid: 'b' } });
    expect(world.lockHolders()).toEqual([]);
  });

  it('releases its ready nodes for all requests', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await registerPool('elsewhere', ['small']);
    const id = await world.submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    await world.during(world.requestor.change(`${NODES}/${node}`, { allocated_to: id, provider: 'elsewhere' }));
    await world.clock.advance(3 * MINUTE_MS);
    expect(world.stateOf(id)).toBe('requested');
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: null });
    await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('returns ready nodes without their tenant if they exceed its limit', async () => {
    const tenantLimits = new Map([['red', { instances: 1 }]]);
    await world.launcher([demo()], 'launcher1', { tenantLimits });
    const nodes = [await freeNode('small'), await freeNode('large')];
    await registerPool('elsewhere', ['small', 'large']);
    const id = await world.submit(['small', 'large'], { provider: 'elsewhere', tenant: 'red' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    const claim = { allocated_to: id, tenant_name: 'red', provider: 'elsewhere' };
    for (const node of nodes) await world.during(world.requestor.change(`${NODES}/${node}`, claim));
    await world.clock.advance(3 * MINUTE_MS);
    const free = { state: 'ready', allocated_to: null, tenant_name: null };
    expect(nodes.map((node) => world.nodes().get(node))).toMatchObject([free, free]);
    for (const node of nodes) await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('with a resumable launch is requeued after a longer delay', async () => {
    await world.launcher([demo()]);
    const node = await freeNode();
    await registerPool('elsewhere', ['small']);
    const id = await world.submit(['small'], { provider: 'elsewhere' });
    await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
    const begun = { allocated_to: id, provider: 'elsewhere', pool: 'main', state: 'building' };
    await world.during(world.requestor.change(`${NODES}/${node}`, begun));
    await world.clock.advance(3 * MINUTE_MS);
    expect(world.stateOf(id)).toBe('pending');
    await world.clock.advance(4 * MINUTE_MS);
    expect(world.stateOf(id)).toBe('requested');
    await world.during(world.requestor.change(`${NODES}/${node}`, { provider: 'demo' }));
  });

  it('is not changed while it is locked', async () => {
    world.cloud.configure({ bootTimeMs: [10 * MINUTE_MS, 10 * MINUTE_MS] });
    await world.launcher([demo()]);
    await world.launcher([provider('other', [pool('main', ['other'])])], 'launcher2');
    const id = await world.submit(['small']);
    await world.until('it is being served', () => world.stateOf(id) === 'pending');
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.stateOf(id)).toBe('pending');
    await world.fulfilled(id);
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

describe('nodes of a provider that no launcher serves any more', () => {
  it('are not deleted, and one warning is logged', async () => {
    const { launcher } = await world.launcher([demo()]);
    const id = await world.served(['small', 'small']);
    const taken = await world.during(world.requestor.take(id));
    await world.during(launcher.apply(world.config([provider('next', [pool('main', ['other'])])])));
    await world.during(world.requestor.giveBack(taken));
    await world.clock.advance(30 * MINUTE_MS);
    expect([...world.nodes().values()].map(({ state }) => state)).toEqual(['used', 'used']);
    expect(warnings.filter(({ message }) => message.startsWith('No launcher serves the provider'))).toMatchObject([
      { fields: { provider: 'demo', nodes: 2 } },
    ]);
    await world.during(launcher.apply(world.config([demo()])));
    await world.until('they are deleted', () => world.nodes().size === 0);
    expect(world.cloud.existingInstances()).toEqual([]);
  });

  it('are deleted by another launcher that still serves it, without a warning', async () => {
    const { launcher } = await world.launcher([demo()]);
    await world.launcher([demo()], 'launcher2');
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.during(launcher.apply(world.config([])));
    await world.during(world.requestor.giveBack(taken));
    await world.until('it is deleted', () => world.nodes().size === 0);
    await world.clock.advance(10 * MINUTE_MS);
    expect(warnings.filter(({ message }) => message.startsWith('No launcher serves the provider'))).toEqual([]);
  });
});

describe('an unreadable node record', () => {
  it('is deleted when it is empty and was unlocked for some time', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`));
    await world.during(other.create(`${NODES}/0000000042/lock`));
    await world.during(other.create(`${NODES}/0000000043`));
    await world.until('they are gone', () => ![...world.server.dump().keys()].some((path) => path.includes('000004')));
  });

  it('is not deleted while its lock is contended', async () => {
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

  it('is not deleted while another program has a znode below it', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`));
    await world.during(other.create(`${NODES}/0000000042/notes`));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.server.dump().has(`${NODES}/0000000042/notes`)).toBe(true);
    await world.during(other.delete(`${NODES}/0000000042/notes`));
    await world.until('it is gone', () => !world.server.dump().has(`${NODES}/0000000042`));
  });

  it('is deleted only if two searches found the same record', async () => {
    await world.launcher([demo()]);
    const path = `${NODES}/0000000042`;
    await world.during(other.create(path));
    for (let search = 0; search < 10; search += 1) {
      await world.clock.advance(45_000);
      await world.during(other.delete(path));
      await world.during(other.create(path));
    }
    await world.until('it is gone', () => !world.server.dump().has(path));
  });

  it('is kept for the operator when it has content', async () => {
    await world.launcher([demo()]);
    await world.during(other.create(`${NODES}/0000000042`, Buffer.from('{"state": "rea')));
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.server.dump().has(`${NODES}/0000000042`)).toBe(true);
    await world.during(other.delete(`${NODES}/0000000042`));
  });
});
