/** Several stores compete for the same records: exactly one gets them, and the others leave nothing behind. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { sleep } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import type { AcceptedRequest, NodeHandle, Store } from '@nodepool/store';
import { Simulation, given, nodeData, requestData } from '../simulation.js';

let simulation: Simulation;

afterEach(() => simulation.close());

/** Returns stores on one ensemble whose messages take a random time. */
async function racing(seed: number, count: number): Promise<Store[]> {
  const random = seededRandom(seed);
  simulation = new Simulation({ seed, latencyMs: () => Math.floor(random.next() * 5) });
  const stores: Store[] = [];
  for (let i = 0; i < count; i += 1) stores.push(await simulation.store());
  return stores;
}

describe.each([1, 2, 3, 4, 5])('with the seed %d', (seed) => {
  it('a request is accepted by exactly one launcher', async () => {
    const stores = await racing(seed, 3);
    const first = given(stores[0]);
    const [ready] = await simulation.run(first.nodes.create([nodeData()]));
    const id = await simulation.run(first.requests.submit(requestData(), { priority: 100 }));
    await simulation.settled();
    const accepted = await simulation.run(
      Promise.all(
        stores.map(({ requests, nodes }) =>
          requests.accept(given(requests.get(id)), {
            create: [nodeData({ state: 'init', allocated_to: id })],
            reuse: [given(nodes.get(given(ready)))],
          }),
        ),
      ),
    );
    await simulation.settled();
    const winners = accepted.filter((each): each is AcceptedRequest => each !== undefined);
    expect(winners).toHaveLength(1);
    expect(simulation.contenders().sort()).toEqual(
      [given(winners[0]).request.lock.contender, given(given(winners[0]).reused[0]).lock.contender].sort(),
    );
    for (const store of stores) {
      expect(store.nodes.allocatedTo(id)).toHaveLength(2);
      simulation.expectMirrored(store);
    }
  });

  it('nodes that stores create once for a provider exist once', async () => {
    const stores = await racing(seed, 3);
    const created = await simulation.run(
      Promise.all(
        stores.map(({ nodes }) =>
          nodes.createOnce('rack', () =>
            [...nodes.ofProvider('rack')].length > 0 ? [] : [nodeData({ provider: 'rack' })],
          ),
        ),
      ),
    );
    expect(created.flat()).toHaveLength(1);
  });

  it('a ready node is allocated to exactly one of several requests', async () => {
    const stores = await racing(seed, 3);
    const first = given(stores[0]);
    const [ready] = await simulation.run(first.nodes.create([nodeData()]));
    const ids = await simulation.run(
      Promise.all(stores.map(() => first.requests.submit(requestData(), { priority: 100 }))),
    );
    await simulation.settled();
    const accepted = await simulation.run(
      Promise.all(
        stores.map(({ requests, nodes }, index) =>
          requests.accept(given(requests.get(given(ids[index]))), {
            create: [],
            reuse: [given(nodes.get(given(ready)))],
          }),
        ),
      ),
    );
    await simulation.settled();
    const winner = accepted.findIndex((each) => each !== undefined);
    expect(accepted.filter((each) => each !== undefined)).toHaveLength(1);
    expect(simulation.json(`/nodepool/nodes/${given(ready)}`)).toMatchObject({ allocated_to: ids[winner] });
    expect(ids.map((id) => simulation.json(`/nodepool/requests/${id}`))).toMatchObject(
      ids.map((_, index) => ({ state: index === winner ? 'pending' : 'requested' })),
    );
    expect(simulation.contenders()).toHaveLength(2);
  });

  it('a node is locked by one client at a time, and no write of a holder is lost', async () => {
    const stores = await racing(seed, 3);
    const nodes = await simulation.run(given(stores[0]).nodes.create(Array.from({ length: 4 }, () => nodeData())));
    await simulation.settled();
    const holders = new Map<string, Store>();
    let written = 0;
    const work = async (store: Store, random: { next(): number }): Promise<void> => {
      for (let round = 0; round < 25; round += 1) {
        const id = given(nodes[Math.floor(random.next() * nodes.length)]);
        const handle: NodeHandle | undefined = await store.nodes.tryLock(id);
        if (handle === undefined) {
          await new Promise<void>((resolve) => simulation.clock.schedule(1 + Math.floor(random.next() * 5), resolve));
          continue;
        }
        expect(holders.has(id)).toBe(false);
        holders.set(id, store);
        const count = Number(handle.node.comment ?? 0);
        await handle.update({ comment: String(count + 1) });
        written += 1;
        holders.delete(id);
        await handle.release();
      }
    };
    await simulation.run(Promise.all(stores.map((store, index) => work(store, seededRandom(seed * 100 + index)))));
    await simulation.settled();
    const counts = [...given(stores[1]).nodes.all()].map(({ node }) => Number(node.comment ?? 0));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(written);
    expect(written).toBeGreaterThan(10);
    expect(simulation.contenders()).toEqual([]);
    for (const store of stores) simulation.expectMirrored(store);
  });
});

describe('a record that another client deletes in the moment of its creation', () => {
  it.each([
    [
      'request',
      '/nodepool/requests/100-0000000000',
      (store: Store) => store.requests.submit(requestData(), { priority: 100 }),
    ],
    ['node', '/nodepool/nodes/0000000000', (store: Store) => store.nodes.create([nodeData()])],
  ])('is not kept: %s', async (_, path, create) => {
    simulation = new Simulation();
    const store = await simulation.store();
    await simulation.run(Promise.all([create(store), simulation.other.delete(path)]));
    await simulation.settled();
    expect(simulation.paths(path)).toEqual([]);
    simulation.expectMirrored(store);
  });

  it('is not kept: mark of an image', async () => {
    simulation = new Simulation();
    const store = await simulation.store();
    await simulation.run(store.images.pause('debian'));
    const path = '/nodepool/images/debian/request-build';
    await simulation.run(Promise.all([store.images.requestBuild('debian'), simulation.other.delete(path)]));
    await simulation.settled();
    expect([store.images.paused('debian'), store.images.buildRequested('debian')]).toEqual([true, false]);
  });
});

describe('nodes that are created once', () => {
  /** Returns a store, and a function that makes other programs create nodes immediately before its transactions. */
  async function interrupted(): Promise<{ store: Store; before: (work: () => Promise<unknown>) => void }> {
    simulation = new Simulation();
    const client = simulation.client();
    const transaction = client.transaction.bind(client);
    let work: (() => Promise<unknown>) | undefined;
    client.transaction = async (ops, options) => {
      const isCreation = ops.some(({ type, path }) => type === 'create' && path.startsWith('/nodepool/nodes/'));
      if (isCreation) await work?.();
      return transaction(ops, options);
    };
    return { store: await simulation.store(client), before: (next) => (work = next) };
  }

  const theirs = (): Promise<unknown> => {
    const data = new TextEncoder().encode(JSON.stringify(nodeData({ provider: 'rack' })));
    return simulation.other.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' });
  };

  it('are planned again if another program has created one since the plan', async () => {
    const { store, before } = await interrupted();
    // Creations and deletions before, so that ids and numbers of children differ.
    const [first] = await simulation.run(store.nodes.create([nodeData(), nodeData(), nodeData()]));
    await simulation.run(simulation.other.delete(`/nodepool/nodes/${given(first)}`));
    let count = 0;
    before(async () => {
      count += 1;
      if (count === 1) await theirs();
    });
    const planned: number[] = [];
    const ids = await simulation.run(
      store.nodes.createOnce('rack', () => {
        const present = [...store.nodes.ofProvider('rack')].length;
        planned.push(present);
        return present === 0 ? [nodeData({ provider: 'rack' })] : [];
      }),
    );
    await simulation.settled();
    expect(planned).toEqual([0, 1]);
    expect(ids).toEqual([]);
    expect([...store.nodes.ofProvider('rack')]).toHaveLength(1);
    simulation.expectMirrored(store);
  });

  it('are planned from the records of other programs whose reads are late', async () => {
    simulation = new Simulation();
    const client = simulation.client();
    const get = client.get.bind(client);
    client.get = async (path, options) => {
      if (path.startsWith('/nodepool/nodes/')) await sleep(simulation.clock, 1000);
      return get(path, options);
    };
    const store = await simulation.store(client);
    await simulation.run(theirs());
    const planned: number[] = [];
    await simulation.run(
      store.nodes.createOnce('rack', () => {
        planned.push([...store.nodes.ofProvider('rack')].length);
        return [];
      }),
    );
    expect(planned).toEqual([1]);
  });

  it('are created once the state of the server is checked after a new connection', async () => {
    simulation = new Simulation();
    const client = simulation.client();
    const exists = client.exists.bind(client);
    let delayMs = 0;
    client.exists = async (path, options) => {
      const waitMs = path === '/nodepool/nodes' ? delayMs : 0;
      delayMs -= waitMs;
      if (waitMs > 0) await sleep(simulation.clock, waitMs);
      return exists(path, options);
    };
    const store = await simulation.store(client);
    simulation.server.partition(client, 'cut');
    await simulation.clock.advance(2000);
    delayMs = 5000;
    simulation.server.heal(client);
    expect(await simulation.clock.runUntil(() => client.state === 'connected', 60_000)).toBe(true);
    const ready = store.ready();
    await simulation.clock.advance(2000);
    expect(store.complete).toBe(false);
    const ids = await simulation.run(store.nodes.createOnce('rack', () => [nodeData({ provider: 'rack' })]));
    expect([ids.length, store.complete]).toEqual([1, true]);
    await simulation.run(ready);
  });

  it('are created although other programs create nodes all the time', async () => {
    const { store, before } = await interrupted();
    before(theirs);
    const ids = await simulation.run(store.nodes.createOnce('rack', () => [nodeData({ provider: 'rack' })]));
    await simulation.settled();
    expect(ids).toHaveLength(1);
    expect(store.nodes.get(given(ids[0]))).toBeDefined();
    simulation.expectMirrored(store);
  });
});
