/** Reads and writes of requests. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LostOwnershipError,
  RequestGoneError,
  TransactionTooLargeError,
  type AcceptedRequest,
  type NodeHandle,
  type RequestEntry,
  type Store,
} from '@nodepool/store';
import { sleep, type NodeData } from '@nodepool/core';
import { Simulation, bytes, given, ignoring, nodeData, requestData, submitted, writesOf } from '../simulation.js';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

function planned(entry: RequestEntry, over: Partial<NodeData> = {}): NodeData {
  return nodeData({ state: 'init', allocated_to: entry.id, external_id: null, ...over });
}

async function accept(
  entry: RequestEntry,
  create: readonly NodeData[] = [],
  reuse: readonly string[] = [],
): Promise<AcceptedRequest | undefined> {
  const nodes = { create, reuse: reuse.map((id) => given(store.nodes.get(id))) };
  return simulation.run(store.requests.accept(entry, nodes));
}

/** Locks the records created by the acceptance. */
async function lockCreated(accepted: AcceptedRequest): Promise<readonly NodeHandle[]> {
  const targets = accepted.created.map((id) => ({ id, change: { state: 'building' as const } }));
  return given(await simulation.run(store.nodes.tryLockAll(targets)));
}

const requestJson = (id: string): unknown => simulation.json(`/nodepool/requests/${id}`);
const nodeJson = (id: string): unknown => simulation.json(`/nodepool/nodes/${id}`);

describe('submitting a request', () => {
  it('returns an id with its priority once the request is in the cache', async () => {
    const id = await simulation.run(store.requests.submit(requestData(), { priority: 7 }));
    expect(id).toBe('007-0000000000');
    expect(store.requests.get(id)).toMatchObject({ version: 0, locked: false, request: { id, state: 'requested' } });
    expect([...store.requests.inState('requested')].map((entry) => entry.id)).toEqual([id]);
  });

  it('as an ephemeral znode ends with the session', async () => {
    const options = { priority: 900, ephemeral: true };
    const id = await simulation.run(store.requests.submit(requestData(), options));
    simulation.server.expireSession(store.zooKeeper);
    await simulation.clock.advance(60_000);
    expect(requestJson(id)).toBeUndefined();
    expect(store.requests.get(id)).toBeUndefined();
  });

  it.each([-1, 1000, 0.5])('rejects a priority of %d', async (priority) => {
    await expect(store.requests.submit(requestData(), { priority })).rejects.toThrow(/0 to 999/);
  });

  it('can be undone completely, also when the request is already deleted', async () => {
    const { id } = await submitted(simulation, store);
    await simulation.run(store.requests.remove(id));
    await simulation.run(store.requests.remove(id));
    expect(store.requests.get(id)).toBeUndefined();
    expect(requestJson(id)).toBeUndefined();
  });
});

describe('a znode below a request', () => {
  it('is not a request', async () => {
    const { id } = await submitted(simulation, store);
    await simulation.put(`/nodepool/requests/${id}/lock`, '');
    expect([...store.requests.all()].map((entry) => entry.id)).toEqual([id]);
    expect([...store.requests.corrupt()]).toEqual([]);
  });
});

describe('accepting a request', () => {
  it('locks it, creates its nodes and allocates ready ones in one transaction', async () => {
    const [ready] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store, { node_types: ['small', 'large', 'small'] });
    let accepted: AcceptedRequest | undefined;
    const writes = await writesOf(store.zooKeeper, async () => {
      accepted = await accept(entry, [planned(entry, { type: ['large'] }), planned(entry)], [given(ready)]);
    });
    expect(writes).toBe(1);
    const { request, created, reused } = given(accepted);
    expect(request.request.state).toBe('pending');
    expect(store.requests.get(entry.id)).toMatchObject({ version: 1, locked: true, request: { state: 'pending' } });
    expect(created.map((id) => store.nodes.get(id))).toMatchObject([
      { locked: false, node: { state: 'init', type: ['large'], allocated_to: entry.id } },
      { locked: false, node: { state: 'init', type: ['small'], allocated_to: entry.id } },
    ]);
    expect(reused.map(({ id, node }) => [id, node.allocated_to])).toEqual([[ready, entry.id]]);
    expect(store.nodes.get(given(ready))).toMatchObject({ locked: true, node: { state: 'ready' } });
    simulation.expectMirrored(store);
  });

  it('fails without an effect when the request changed meanwhile', async () => {
    const entry = await submitted(simulation, store);
    await simulation.put(`/nodepool/requests/${entry.id}`, requestData({ relative_priority: 5 }));
    expect(await accept(entry, [planned(entry)])).toBeUndefined();
    expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
    expect(simulation.contenders()).toEqual([]);
  });

  it('fails without an effect when the request was withdrawn, also when the cache still has it', async () => {
    const entry = await submitted(simulation, store);
    simulation.server.setLag(store.zooKeeper, 50);
    await simulation.run(simulation.other.delete(`/nodepool/requests/${entry.id}`));
    expect(await accept(entry, [planned(entry)])).toBeUndefined();
    expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
    expect(simulation.contenders()).toEqual([]);
  });

  it('fails without an effect when a node to reuse was locked by another client', async () => {
    const [ready] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store);
    const reuse = [given(store.nodes.get(given(ready)))];
    const taken = given(await simulation.run(store.nodes.tryLock(given(ready))));
    expect(await simulation.run(store.requests.accept(entry, { create: [], reuse }))).toBeUndefined();
    await simulation.run(taken.release({ state: 'used' }));
    expect(await simulation.run(store.requests.accept(entry, { create: [], reuse }))).toBeUndefined();
    expect(requestJson(entry.id)).toMatchObject({ state: 'requested' });
    expect(simulation.contenders()).toEqual([]);
  });

  it('accepts an orphaned pending request without a change', async () => {
    const entry = await submitted(simulation, store, { state: 'pending', state_time: 5 });
    const accepted = given(await accept(entry));
    expect(accepted.request.request).toMatchObject({ state: 'pending', state_time: 5 });
    expect(requestJson(entry.id)).toEqual(requestData({ state: 'pending', state_time: 5 }));
  });

  it.each(['fulfilled', 'failed'] as const)('does not accept one that is %s', async (state) => {
    const entry = await submitted(simulation, store, { state });
    expect(await accept(entry)).toBeUndefined();
  });

  it('works with two hundred nodes, and rejects too many', async () => {
    const entry = await submitted(simulation, store, { node_types: Array<string>(200).fill('small') });
    const big = planned(entry, { user_data: 'x'.repeat(600), host_keys: ['ssh-rsa '.padEnd(400, 'A')] });
    const tooMany = Array<NodeData>(2000).fill(big);
    await expect(simulation.run(store.requests.accept(entry, { create: tooMany, reuse: [] }))).rejects.toThrow(
      TransactionTooLargeError,
    );
    expect(simulation.contenders()).toEqual([]);
    const accepted = given(await accept(entry, Array<NodeData>(200).fill(big)));
    const handles = await lockCreated(accepted);
    await simulation.run(accepted.request.fulfil(handles.map((handle) => ({ handle }))));
    expect(requestJson(entry.id)).toMatchObject({ state: 'fulfilled', nodes: accepted.created });
    expect([...store.nodes.inState('ready')]).toHaveLength(200);
    expect(simulation.contenders()).toEqual([]);
    await simulation.settled();
    simulation.expectMirrored(store);
  });
});

describe('fulfilling a request', () => {
  it('releases all nodes at once: ready, unlocked, in the given order', async () => {
    const [ready] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store, { node_types: ['large', 'small'] });
    const accepted = given(await accept(entry, [planned(entry)], [given(ready)]));
    const [launched] = await lockCreated(accepted);
    const states: string[] = [];
    store.requests.onChange(({ after }) => states.push(`${String(after?.request.state)} ${String(after?.locked)}`));
    const writes = await writesOf(store.zooKeeper, () =>
      simulation.run(
        accepted.request.fulfil([
          { handle: given(launched), change: { external_id: 'new', host_keys: ['ssh-rsa A'] } },
          { handle: given(accepted.reused[0]) },
        ]),
      ),
    );
    expect(writes).toBe(1);
    expect(requestJson(entry.id)).toMatchObject({ state: 'fulfilled', nodes: [launched?.id, ready] });
    expect(nodeJson(given(launched).id)).toMatchObject({ state: 'ready', external_id: 'new', allocated_to: entry.id });
    expect(nodeJson(given(ready))).toMatchObject({ state: 'ready', allocated_to: entry.id });
    expect(simulation.contenders()).toEqual([]);
    expect(states).toEqual(['fulfilled false']);
    simulation.expectMirrored(store);
  });

  it('is reported before the deletion by a requestor that is faster than the answer', async () => {
    const { zooKeeper } = store;
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry)]));
    const [handle] = await lockCreated(accepted);
    const changes: unknown[] = [];
    store.requests.onChange(({ id, before, after }) =>
      changes.push([before?.request.state, after?.request.state, store.requests.get(id)?.request.state]),
    );
    const transaction = zooKeeper.transaction.bind(zooKeeper);
    zooKeeper.transaction = async (...ops) => {
      const results = await transaction(...ops);
      await simulation.other.delete(`/nodepool/requests/${entry.id}`);
      // The event of the deletion arrives.
      await sleep(simulation.clock, 100);
      return results;
    };
    await simulation.run(accepted.request.fulfil([{ handle: given(handle) }]));
    expect(changes).toEqual([
      ['pending', 'fulfilled', 'fulfilled'],
      ['fulfilled', undefined, undefined],
    ]);
    simulation.expectMirrored(store);
  });

  it('fails when the request was withdrawn, and keeps all locks', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry)]));
    const [handle] = await lockCreated(accepted);
    await simulation.run(simulation.other.delete(`/nodepool/requests/${entry.id}`));
    const fulfil = accepted.request.fulfil([{ handle: given(handle) }]);
    await expect(simulation.run(fulfil)).rejects.toThrow(RequestGoneError);
    expect(nodeJson(given(handle).id)).toMatchObject({ state: 'building' });
    expect(simulation.contenders()).toHaveLength(2);
    await simulation.run(given(handle).release({ allocated_to: null, state: 'ready' }));
    await simulation.run(accepted.request.lock.release());
    expect(simulation.contenders()).toEqual([]);
  });

  it('fails when one of the nodes is no longer locked', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry), planned(entry)]));
    const handles = await lockCreated(accepted);
    await simulation.run(simulation.other.delete(given(handles[1]).lock.contender));
    const fulfil = accepted.request.fulfil(handles.map((handle) => ({ handle })));
    await expect(simulation.run(fulfil)).rejects.toMatchObject({
      name: 'LostOwnershipError',
      path: `/nodepool/nodes/${given(handles[1]).id}`,
    });
    expect(requestJson(entry.id)).toMatchObject({ state: 'pending' });
  });

  it('waits for pending writes of its nodes', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry)]));
    const [handle] = await lockCreated(accepted);
    await simulation.run(
      Promise.all([
        given(handle).update({ external_id: 'late' }),
        accepted.request.fulfil([{ handle: given(handle), change: { hostname: 'h' } }]),
      ]),
    );
    expect(nodeJson(given(handle).id)).toMatchObject({ state: 'ready', external_id: 'late', hostname: 'h' });
  });

  it('preserves fields of the requestor', async () => {
    const id = await simulation.run(store.requests.submit(requestData(), { priority: 100 }));
    await simulation.put(`/nodepool/requests/${id}`, { ...requestData(), span_info: { trace: 1 }, odd: [null] });
    const accepted = given(await accept(given(store.requests.get(id))));
    await simulation.run(accepted.request.fulfil([]));
    expect(requestJson(id)).toMatchObject({ state: 'fulfilled', span_info: { trace: 1 }, odd: [null] });
  });
});

describe('releasing a request', () => {
  it('changes and unlocks it, and frees its nodes in the same transaction', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry), planned(entry)]));
    const [a, b] = await lockCreated(accepted);
    const writes = await writesOf(store.zooKeeper, () =>
      simulation.run(
        accepted.request.release({ state: 'requested', declined_by: ['me'] }, [
          { handle: given(a), change: { state: 'ready' } },
          { handle: given(b), change: { state: 'failed' } },
        ]),
      ),
    );
    expect(writes).toBe(1);
    expect(requestJson(entry.id)).toMatchObject({ state: 'requested', declined_by: ['me'] });
    expect(nodeJson(given(a).id)).toMatchObject({ state: 'ready', allocated_to: null });
    expect(nodeJson(given(b).id)).toMatchObject({ state: 'failed', allocated_to: null });
    expect(simulation.contenders()).toEqual([]);
  });

  it('without a change only unlocks it', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry));
    await simulation.run(accepted.request.release({}));
    expect(store.requests.get(entry.id)).toMatchObject({ version: 1, locked: false, request: { state: 'pending' } });
    expect(given(await accept(given(store.requests.get(entry.id)))).request.id).toBe(entry.id);
  });

  it('reports a withdrawn request', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry));
    await simulation.run(simulation.other.delete(`/nodepool/requests/${entry.id}`));
    await expect(simulation.run(accepted.request.release({ state: 'failed' }))).rejects.toThrow(RequestGoneError);
    await simulation.settled();
    expect(simulation.contenders()).toEqual([]);
  });

  it('unlocks it and its nodes although the change could not be written', async () => {
    const [node] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [], [given(node)]));
    await simulation.run(simulation.other.set(`/nodepool/requests/${entry.id}`, bytes(JSON.stringify(requestData()))));
    const handles = accepted.reused.map((handle) => ({ handle }));
    const released = accepted.request.release({ state: 'requested' }, handles);
    await expect(simulation.run(released)).rejects.toThrow(LostOwnershipError);
    await simulation.settled();
    expect(simulation.contenders()).toEqual([]);
  });
});

describe('the lock of a deleted request', () => {
  it('is orphaned once it is uncontended, is reported, and can be deleted', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry));
    await simulation.run(simulation.other.delete(`/nodepool/requests/${entry.id}`));
    await simulation.settled();
    expect([...store.requests.orphanedLocks()]).toEqual([]);
    const reported: string[] = [];
    store.requests.onChange(({ id, after }) => {
      if (after === undefined) reported.push(id);
    });
    await simulation.run(accepted.request.lock.release());
    await simulation.settled();
    expect(reported).toEqual([entry.id]);
    expect([...store.requests.orphanedLocks()]).toEqual([entry.id]);
    await simulation.run(store.requests.removeOrphanedLocks([...store.requests.orphanedLocks(), '100-0000009999']));
    expect([...store.requests.orphanedLocks()]).toEqual([]);
    expect(simulation.paths('/nodepool/requests-lock/')).toEqual([]);
  });

  it('is listed as orphaned when listeners are notified of the deletion', async () => {
    const entry = await submitted(simulation, store);
    await simulation.run(given(await accept(entry)).request.release({}));
    const orphans: string[][] = [];
    store.requests.onChange(({ after }) => {
      if (after === undefined) orphans.push([...store.requests.orphanedLocks()]);
    });
    await simulation.run(store.requests.remove(entry.id));
    expect(orphans).toEqual([[entry.id]]);
  });

  it('is not deleted while it is contended', async () => {
    const path = '/nodepool/requests-lock/100-0000000005/aaaa__lock__0000000000';
    await simulation.put(path, '');
    await simulation.run(store.requests.removeOrphanedLocks(['100-0000000005']));
    expect(simulation.paths('/nodepool/requests-lock/')).toContain(path);
  });

  it('of an unreadable request is not orphaned', async () => {
    await simulation.put('/nodepool/requests/100-0000000005', '{}');
    await simulation.put('/nodepool/requests-lock/100-0000000005', '');
    expect([...store.requests.corrupt()]).toHaveLength(1);
    expect([...store.requests.orphanedLocks()]).toEqual([]);
    const reported: string[] = [];
    store.requests.onChange(({ id }) => reported.push(id));
    await simulation.run(ignoring('no-node', simulation.other.delete('/nodepool/requests/100-0000000005')));
    await simulation.settled();
    expect([...store.requests.orphanedLocks()]).toEqual(['100-0000000005']);
    expect(reported).toEqual(['100-0000000005']);
  });

  it('is no longer orphaned when a request of its id appears, readable or not', async () => {
    for (const [id, request] of Object.entries({ '100-0000000005': requestData(), '100-0000000006': '{}' })) {
      await simulation.put(`/nodepool/requests-lock/${id}`, '');
      expect([...store.requests.orphanedLocks()]).toEqual([id]);
      await simulation.put(`/nodepool/requests/${id}`, request);
      expect([...store.requests.orphanedLocks()]).toEqual([]);
    }
  });
});

describe('undoing an acceptance', () => {
  it('restores the request and deletes the records in one transaction', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry), planned(entry)]));
    const records = accepted.created.map((id) => ({ id, version: 0 }));
    await simulation.run(accepted.request.undo(records));
    await simulation.settled();
    expect(given(store.requests.get(entry.id)).request.state).toBe('requested');
    expect(given(store.requests.get(entry.id)).locked).toBe(false);
    expect(store.nodes.size).toBe(0);
    simulation.expectMirrored(store);
  });

  it('fails when the launch of one of the records has started', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry), planned(entry)]));
    const [first] = await lockCreated(accepted);
    await simulation.run(given(first).update({ state: 'building' }));
    const records = accepted.created.map((id) => ({ id, version: 0 }));
    await expect(simulation.run(accepted.request.undo(records))).rejects.toThrow();
    await simulation.settled();
    expect(given(store.requests.get(entry.id)).locked).toBe(false);
    expect(given(store.requests.get(entry.id)).request.state).toBe('pending');
    expect(store.nodes.size).toBe(2);
  });

  it('reports a withdrawn request', async () => {
    const entry = await submitted(simulation, store);
    const accepted = given(await accept(entry, [planned(entry)]));
    await simulation.run(store.requests.remove(entry.id));
    const records = accepted.created.map((id) => ({ id, version: 0 }));
    await expect(simulation.run(accepted.request.undo(records))).rejects.toBeInstanceOf(RequestGoneError);
  });
});
