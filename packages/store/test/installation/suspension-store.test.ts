/** Deletions are suspended while the records in ZooKeeper may not be those of the resources in the clouds. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Store } from '@nodepool/store';
import { sleep } from '@nodepool/core';
import { nodeDataWith } from '@nodepool/core/testing';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Simulation } from '../simulation.js';

const ID = '/nodepool/installation';
const ROOT = '/nodepool/suspensions';
let simulation: Simulation;

beforeEach(() => {
  simulation = new Simulation();
});

afterEach(() => simulation.close());

async function createNodes(store: Store, count: number): Promise<void> {
  await simulation.run(store.nodes.create(Array.from({ length: count }, () => nodeDataWith({}))));
}

/** Returns a client that cannot write suspensions until `end` is called. */
function withoutWrites(): { readonly client: ZooKeeper; readonly end: () => void } {
  const client = simulation.client();
  const create = client.create.bind(client);
  let fails = true;
  client.create = (path, data, options) =>
    fails && path.startsWith(ROOT) ? Promise.reject(new Error('no')) : create(path, data, options);
  return { client, end: () => (fails = false) };
}

describe('a suspension that cannot be written', () => {
  it('takes effect at once, and is written later', async () => {
    const { client, end } = withoutWrites();
    const store = await simulation.store(client);
    await simulation.run(simulation.other.set(ID, Buffer.from('another')));
    await simulation.clock.advance(10_000);
    expect(await simulation.run(store.suspensions.check('demo'))).toMatchObject({ provider: null });
    expect(simulation.paths(`${ROOT}/`)).toEqual([]);
    end();
    await simulation.clock.advance(10_000);
    expect(simulation.json(`${ROOT}/installation`)).toMatchObject({ reason: expect.stringContaining('another') });
  });

  it('is not written to another installation', async () => {
    const { client, end } = withoutWrites();
    const store = await simulation.store(client);
    const { id } = store.installation;
    await simulation.run(simulation.other.set(ID, Buffer.from('another')));
    await simulation.clock.advance(10_000);
    await simulation.run(simulation.other.set(ID, Buffer.from(id)));
    end();
    await simulation.clock.advance(10_000);
    expect(simulation.paths(`${ROOT}/`)).toEqual([]);
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
  });

  it('is not written after an operator has ended it', async () => {
    const { client, end } = withoutWrites();
    const store = await simulation.store(client);
    await simulation.run(simulation.other.set(ID, Buffer.from('another')));
    await simulation.clock.advance(10_000);
    await simulation.run(store.suspensions.resume(null));
    end();
    await simulation.clock.advance(10_000);
    expect(simulation.paths(`${ROOT}/`)).toEqual([]);
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
  });
});

describe('deletions are suspended', () => {
  it('by no node that becomes known before the answer of an earlier read arrives', async () => {
    const client = simulation.client();
    const store = await simulation.store(client);
    await createNodes(store, 3);
    const exists = client.exists.bind(client);
    client.exists = async (...args) => {
      const stat = await exists(...args);
      client.exists = exists;
      await store.nodes.create([nodeDataWith({}), nodeDataWith({})]);
      return stat;
    };
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    expect(store.nodes.size).toBe(5);
  });

  it('by no ordinary start, restart or loss of the connection', async () => {
    const client = simulation.client();
    const store = await simulation.store(client);
    await createNodes(store, 3);
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    simulation.server.partition(client);
    await simulation.clock.advance(60_000);
    simulation.server.heal(client);
    await simulation.run(store.ready());
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    expect(await simulation.run((await simulation.store()).suspensions.check('demo'))).toBeUndefined();
    expect(simulation.paths(ROOT)).toEqual([]);
  });

  it('when a running process finds an ensemble without an id, for all processes and after restarts', async () => {
    const store = await simulation.store();
    await simulation.run(simulation.other.delete(ID));
    await simulation.settled();
    expect(store.suspensions.all()).toMatchObject([{ provider: null, nextNode: '0000000000' }]);
    const restarted = await simulation.store();
    expect(restarted.suspensions.all()).toEqual(store.suspensions.all());
    expect(await simulation.run(restarted.suspensions.check('demo'))).toMatchObject({ provider: null });
  });

  it('when the id differs from the one that a process knew, at the first read of it', async () => {
    const store = await simulation.store();
    await simulation.run(simulation.other.set(ID, Buffer.from('another')));
    expect(await simulation.run(store.suspensions.check('demo'))).toMatchObject({
      reason: expect.stringContaining('another'),
    });
  });

  it('when an operator sets the id', async () => {
    const store = await simulation.store();
    await simulation.run(store.installation.set('production'));
    expect(simulation.json(`${ROOT}/installation`)).toMatchObject({ provider: null });
  });

  it('when the ids of nodes start again, because an older state was restored', async () => {
    const client = simulation.client();
    const store = await simulation.store(client);
    await createNodes(store, 2);
    const backup = simulation.server.snapshot();
    await createNodes(store, 3);
    expect(await simulation.run(store.suspensions.nextNodeId())).toBe('0000000005');
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    simulation.server.restore(backup);
    await simulation.run(store.ready());
    expect(await simulation.run(store.suspensions.check('demo'))).toMatchObject({
      reason: expect.stringContaining('0000000002'),
      nextNode: '0000000002',
    });
    await simulation.settled();
    expect(simulation.json(`${ROOT}/installation`)).toMatchObject({ nextNode: '0000000002' });
  });

  it('when the transactions start again, because an older state with the same nodes was restored', async () => {
    const store = await simulation.store();
    await createNodes(store, 2);
    const backup = simulation.server.snapshot();
    for (let count = 0; count < 5; count += 1) await simulation.run(simulation.other.create(`/other-${count}`));
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    simulation.server.restore(backup);
    await simulation.run(store.ready());
    expect(await simulation.run(store.suspensions.check('demo'))).toMatchObject({
      reason: expect.stringContaining('its newest transaction is'),
    });
  });

  it('before the store is complete, so that new nodes cannot hide that the ids start again', async () => {
    const client = simulation.client();
    const exists = client.exists.bind(client);
    let delayMs = 0;
    client.exists = async (path, options) => {
      if (path === '/nodepool/nodes') await sleep(simulation.clock, delayMs);
      return exists(path, options);
    };
    const store = await simulation.store(client);
    const backup = simulation.server.snapshot();
    await createNodes(store, 3);
    await simulation.run(store.suspensions.check('demo'));
    delayMs = 1000;
    simulation.server.restore(backup);
    expect(await simulation.clock.runUntil(() => !store.complete, 60_000)).toBe(true);
    await simulation.run(store.ready());
    expect(store.suspensions.all()).toMatchObject([{ provider: null }]);
  });

  it('for one provider, and not for others', async () => {
    const store = await simulation.store();
    await simulation.run(store.suspensions.suspend('a/b', 'most of its resources have no record'));
    expect(await simulation.run(store.suspensions.check('a/b'))).toMatchObject({ provider: 'a/b' });
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
    await simulation.settled();
    expect(store.suspensions.all()).toMatchObject([{ provider: 'a/b' }]);
  });

  it('also by a znode that cannot be read', async () => {
    const store = await simulation.store();
    await simulation.put(`${ROOT}/installation`, 'no JSON');
    expect(await simulation.run(store.suspensions.check('demo'))).toMatchObject({ by: 'unknown', nextNode: null });
  });

  it('until an operator confirms', async () => {
    const store = await simulation.store();
    await simulation.run(store.installation.set('production'));
    const operator = await simulation.store();
    await simulation.run(operator.suspensions.resume(null));
    await simulation.settled();
    expect(store.suspensions.all()).toEqual([]);
    expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
  });
});

it('a process that returns to its former ensemble does not suspend deletions there', async () => {
  const store = await simulation.store();
  const { id } = store.installation;
  await createNodes(store, 2);
  await simulation.run(store.suspensions.check('demo'));
  await simulation.run(simulation.other.set(ID, Buffer.from('another')));
  await simulation.settled();
  await simulation.run(simulation.other.delete(`${ROOT}/installation`));
  await simulation.run(simulation.other.set(ID, Buffer.from(id)));
  await simulation.settled();
  expect(await simulation.run(store.suspensions.check('demo'))).toBeUndefined();
  expect(simulation.paths(`${ROOT}/`)).toEqual([]);
});
