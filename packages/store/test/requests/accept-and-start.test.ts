/** Acceptances that also lock and start the new records, in one transaction. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { OutcomeUnknownError } from '@nodepool/zookeeper';
import { seededRandom } from '@nodepool/core/testing';
import { sleep, type NodeData } from '@nodepool/core';
import type { AcceptedRequest, RequestEntry, Store } from '@nodepool/store';
import { Simulation, given, nodeData, submitted, writesOf } from '../simulation.js';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

function planned(entry: RequestEntry): NodeData {
  return nodeData({ state: 'init', allocated_to: entry.id, external_id: null });
}

const START = { state: 'building', hostname: 'started' } as const;

function accept(
  of: Store,
  entry: RequestEntry,
  count = 1,
  isConfirmed: () => boolean = () => true,
): Promise<AcceptedRequest | undefined> {
  const create = Array.from({ length: count }, () => planned(entry));
  const start = { changes: create.map(() => START), isConfirmed };
  return of.requests.accept(entry, { create, reuse: [], start });
}

/** Creates a record, after which the next ids are known. */
async function seeNode(): Promise<string> {
  const [id] = await simulation.run(store.nodes.create([nodeData({ hostname: 'older' })]));
  return given(id);
}

const locksBelow = (id: string): string[] => simulation.paths(`/nodepool/nodes/${id}/lock/`);

describe('an acceptance that starts its nodes', () => {
  it('locks and changes them in one transaction, if the ids are known', async () => {
    await seeNode();
    const entry = await submitted(simulation, store);
    let accepted: AcceptedRequest | undefined;
    const writes = await writesOf(store.zooKeeper, async () => {
      accepted = await simulation.run(accept(store, entry, 2));
    });
    expect(writes).toBe(1);
    const { created, started } = given(accepted);
    expect(started.map(({ id }) => id)).toEqual(created);
    for (const { id, node, lock } of started) {
      expect(node).toMatchObject(START);
      expect(lock.held).toBe(true);
      expect(locksBelow(id)).toEqual([lock.contender]);
      expect(simulation.json(`/nodepool/nodes/${id}`)).toMatchObject(START);
    }
    await simulation.settled();
    simulation.expectMirrored(store);
    await simulation.run(given(accepted).request.fulfil(started.map((handle) => ({ handle }))));
    expect(simulation.contenders()).toEqual([]);
    expect(simulation.paths('/nodepool/requests-lock/')).toEqual([]);
    simulation.expectMirrored(store);
  });

  it.each([
    ['its quota is not confirmed', false, true],
    ['no record was seen before', true, false],
  ])('only creates them if %s', async (_, isConfirmed, isSeen) => {
    if (isSeen) await seeNode();
    const entry = await submitted(simulation, store);
    const { created, started } = given(await simulation.run(accept(store, entry, 1, () => isConfirmed)));
    expect(started).toEqual([]);
    expect(simulation.json(`/nodepool/nodes/${given(created[0])}`)).toMatchObject({ state: 'init' });
    expect(locksBelow(given(created[0]))).toEqual([]);
  });

  it('never locks the record of another program that took the id', async () => {
    await seeNode();
    const entry = await submitted(simulation, store);
    simulation.server.setLag(store.zooKeeper, 50);
    const data = Buffer.from(JSON.stringify(nodeData({ hostname: 'foreign' })));
    const foreign = [];
    for (let index = 0; index < 3; index += 1) {
      const mode = 'persistent-sequential' as const;
      foreign.push(await simulation.run(simulation.other.create('/nodepool/nodes/', data, { mode })));
    }
    const { created, started } = given(await simulation.run(accept(store, entry)));
    expect(started).toEqual([]);
    for (const { path } of foreign) {
      expect(simulation.json(path)).toMatchObject({ hostname: 'foreign' });
      expect(simulation.paths(`${path}/`)).toEqual([]);
    }
    expect(simulation.json(`/nodepool/nodes/${given(created[0])}`)).toMatchObject({ state: 'init' });
    await simulation.settled();
    simulation.expectMirrored(store);
  });

  it('gives no id again that a deleted record had', async () => {
    const seen = await seeNode();
    const entry = await submitted(simulation, store);
    simulation.server.setLag(store.zooKeeper, 50);
    const mode = 'persistent-sequential' as const;
    const { path } = await simulation.run(simulation.other.create('/nodepool/nodes/', Buffer.from('{}'), { mode }));
    await simulation.run(simulation.other.delete(path));
    const { created, started } = given(await simulation.run(accept(store, entry)));
    expect(started).toEqual([]);
    expect(Number(created[0])).toBeGreaterThan(Number(seen) + 1);
  });

  it('starts several in flight, and again some time after wrong ids', async () => {
    await seeNode();
    const entries: RequestEntry[] = [];
    for (let index = 0; index < 40; index += 1) entries.push(await submitted(simulation, store));
    const batch = async (from: number, to: number): Promise<number> => {
      const all = await simulation.run(Promise.all(entries.slice(from, to).map((entry) => accept(store, entry))));
      return all.filter((accepted) => given(accepted).started.length > 0).length;
    };
    expect(await batch(0, 10)).toBe(10);
    simulation.server.setLag(store.zooKeeper, 50);
    const mode = 'persistent-sequential' as const;
    await simulation.run(simulation.other.create('/nodepool/nodes/', Buffer.from('{}'), { mode }));
    expect(await batch(10, 20)).toBe(0);
    simulation.server.setLag(store.zooKeeper, 0);
    await simulation.settled();
    for (let index = 20; index < 35; index += 1) await batch(index, index + 1);
    expect(await batch(35, 40)).toBe(5);
  });

  it('leaves records that another launcher can resume if its answer is lost', async () => {
    await seeNode();
    const entry = await submitted(simulation, store);
    simulation.server.loseNextWrite(store.zooKeeper, 'after-applied');
    await expect(simulation.run(accept(store, entry))).rejects.toThrow(OutcomeUnknownError);
    await simulation.settled();
    expect(simulation.contenders()).toEqual([]);
    const [node] = store.nodes.allocatedTo(entry.id);
    expect(node).toMatchObject({ locked: false, node: START });
    simulation.expectMirrored(store);
  });
});

describe('several launchers that accept at the same time', () => {
  it.each(Array.from({ length: 30 }, (_, index) => index + 1))(
    'have different records and only their own locks (seed %d)',
    async (seed) => {
      const random = seededRandom(seed);
      await simulation.close();
      simulation = new Simulation({ seed, latencyMs: () => 1 + Math.floor(random.next() * 10) });
      const stores = [await simulation.store(), await simulation.store(), await simulation.store()];
      store = given(stores[0]);
      await seeNode();
      const entries: RequestEntry[] = [];
      for (let index = 0; index < 30; index += 1) entries.push(await submitted(simulation, store));
      await simulation.settled();
      const work = entries.map(async ({ id }) => {
        await sleep(simulation.clock, Math.floor(random.next() * 30));
        const of = given(stores[Math.floor(random.next() * stores.length)]);
        let known: readonly string[] = [];
        const accepted = await accept(of, given(of.requests.get(id)), 1, () => {
          known = [...of.nodes.all()].map((node) => node.id);
          return true;
        });
        return { of, known, ...given(accepted) };
      });
      const accepted = await simulation.run(Promise.all(work));
      await simulation.settled();
      // No program has created a record between those that the decision knew and those that were started.
      for (const { of, known, created: own, started } of accepted) {
        if (started.length === 0) continue;
        const others = accepted.flatMap((each) => (each.of === of ? [] : each.created));
        expect(others.filter((id) => id < given(own[0]) && !known.includes(id))).toEqual([]);
      }
      const created = accepted.flatMap((each) => each.created);
      expect(new Set(created).size).toBe(created.length);
      const locked = accepted.flatMap(({ started }) => started.map(({ id }) => id));
      const contended = simulation.contenders().flatMap((path) => /nodes\/(\d+)\//.exec(path)?.[1] ?? []);
      expect(contended.sort()).toEqual([...locked].sort());
      for (const { request, created: ids } of accepted) {
        for (const id of ids)
          expect(simulation.json(`/nodepool/nodes/${id}`)).toMatchObject({ allocated_to: request.id });
      }
      for (const each of stores) simulation.expectMirrored(each);
    },
  );
});
