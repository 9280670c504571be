/** Reads and writes of nodes. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CorruptRecordError, LostOwnershipError, type Change, type NodeEntry, type Store } from '@nodepool/store';
import { Simulation, given, nodeData, writesOf } from '../simulation.js';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

const ids = (entries: Iterable<NodeEntry>): string[] => [...entries].map(({ id }) => id);

async function created(...nodes: Parameters<typeof nodeData>[0][]): Promise<readonly string[]> {
  return simulation.run(store.nodes.create(nodes.map((over) => nodeData(over))));
}

function entry(id: string | undefined): NodeEntry {
  return given(store.nodes.get(given(id)));
}

describe('a new node', () => {
  it('has a ten-digit id and is in the cache when that is returned', async () => {
    const [first, second] = await created({}, { state: 'init' });
    expect([first, second]).toEqual(['0000000000', '0000000001']);
    expect(entry(first)).toMatchObject({ version: 0, locked: false, node: { id: first, state: 'ready' } });
    expect(simulation.json('/nodepool/nodes/0000000001')).toMatchObject({ state: 'init', ssh_port: 22 });
  });

  it('is created in one transaction with others, or not at all', async () => {
    expect(await writesOf(store.zooKeeper, () => created({}, {}, {}))).toBe(1);
    await expect(created({ user_data: 'x'.repeat(1_100_000) })).rejects.toThrow(/jute\.maxbuffer/);
    expect(store.nodes.size).toBe(3);
  });

  it('is reported once', async () => {
    const changes: Change<NodeEntry>[] = [];
    store.nodes.onChange((change) => changes.push(change));
    const [id] = await created({});
    await simulation.settled();
    expect(changes).toEqual([{ id, before: undefined, after: entry(id) }]);
  });
});

describe('the indexes', () => {
  it('return nodes in the order of ids, and follow every change', async () => {
    const [a, b, c, d] = await created(
      {},
      { state: 'in-use', allocated_to: '100-0000000001' },
      { provider: 'elsewhere' },
      { type: ['large', 'small'] },
    );
    const query = { label: 'small', provider: 'cloud', pool: 'main' };
    expect(ids(store.nodes.all())).toEqual([a, b, c, d]);
    expect(ids(store.nodes.inState('ready'))).toEqual([a, c, d]);
    expect(ids(store.nodes.ofProvider('cloud'))).toEqual([a, b, d]);
    expect(ids(store.nodes.allocatedTo('100-0000000001'))).toEqual([b]);
    expect(ids(store.nodes.available(query))).toEqual([a, d]);
    expect(ids(store.nodes.available({ ...query, label: 'large' }))).toEqual([d]);

    const handle = given(await simulation.run(store.nodes.tryLock(given(a))));
    expect(ids(store.nodes.available(query))).toEqual([d]);
    await simulation.run(handle.release({ allocated_to: '100-0000000001' }));
    expect(ids(store.nodes.available(query))).toEqual([d]);
    expect(ids(store.nodes.allocatedTo('100-0000000001'))).toEqual([a, b]);
    const again = given(await simulation.run(store.nodes.tryLock(given(a))));
    await simulation.run(again.release({ allocated_to: null }));
    expect(ids(store.nodes.available(query))).toEqual([a, d]);
    await simulation.run(given(await simulation.run(store.nodes.tryLock(given(a)))).remove());
    expect(ids(store.nodes.available(query))).toEqual([d]);
    expect(ids(store.nodes.inState('ready'))).toEqual([c, d]);
  });

  it('can be changed during iteration', async () => {
    await created({}, {}, {});
    const seen: string[] = [];
    for (const { id } of store.nodes.inState('ready')) {
      seen.push(id);
      if (id === '0000000000') {
        await simulation.put('/nodepool/nodes/0000000001', nodeData({ state: 'used' }));
        await created({});
      }
    }
    expect(seen).toEqual(['0000000000', '0000000002']);
    expect(ids(store.nodes.inState('ready'))).toEqual(['0000000000', '0000000002', '0000000003']);
  });
});

describe('a change by another client', () => {
  it('is reported with the records before and after', async () => {
    const [id] = await created({});
    const before = entry(id);
    const changes: Change<NodeEntry>[] = [];
    const stop = store.nodes.onChange((change) => changes.push(change));
    await simulation.put(`/nodepool/nodes/${given(id)}`, nodeData({ state: 'used' }));
    expect(changes).toEqual([{ id, before, after: entry(id) }]);
    expect(entry(id)).toMatchObject({ version: 1, node: { state: 'used' } });
    stop();
    await simulation.run(simulation.other.delete(`/nodepool/nodes/${given(id)}`));
    await simulation.settled();
    expect(changes).toHaveLength(1);
    expect(store.nodes.get(given(id))).toBeUndefined();
  });

  it('of the lock is reported once, for any number of contenders', async () => {
    const [id] = await created({});
    const changes: (boolean | undefined)[] = [];
    store.nodes.onChange(({ after }) => changes.push(after?.locked));
    const lock = `/nodepool/nodes/${given(id)}/lock`;
    await simulation.put(`${lock}/aaaa__lock__0000000000`, '');
    await simulation.put(`${lock}/bbbb__lock__0000000001`, '');
    await simulation.run(simulation.other.delete(`${lock}/aaaa__lock__0000000000`));
    await simulation.settled();
    expect(entry(id).locked).toBe(true);
    await simulation.run(simulation.other.delete(`${lock}/bbbb__lock__0000000001`));
    await simulation.settled();
    expect(changes).toEqual([true, false]);
  });

  it('reaches the other listeners when one of them fails', async () => {
    const heard: string[] = [];
    store.nodes.onChange(() => {
      throw new Error('broken listener');
    });
    store.nodes.onChange(({ id }) => heard.push(id));
    await created({}, {});
    expect(heard).toEqual(['0000000000', '0000000001']);
  });
});

describe('an unreadable record', () => {
  const path = '/nodepool/nodes/0000000000';

  it('is listed with path and reason, and is a node again when it is repaired', async () => {
    await created({});
    await simulation.put(path, '{"state": "rea');
    expect(store.nodes.get('0000000000')).toBeUndefined();
    expect(ids(store.nodes.inState('ready'))).toEqual([]);
    expect([...store.nodes.corrupt()]).toEqual([{ path, version: 1, reason: expect.stringContaining('not JSON') }]);
    await simulation.put(path, nodeData());
    expect([...store.nodes.corrupt()]).toEqual([]);
    expect(entry('0000000000').version).toBe(2);
  });

  it('does not count as deleted', async () => {
    await simulation.put(path, '');
    await expect(simulation.run(store.nodes.read('0000000000'))).rejects.toThrow(CorruptRecordError);
    await expect(simulation.run(store.nodes.lock('0000000000'))).rejects.toThrow(/it is empty/);
    expect(await simulation.run(store.nodes.readIds())).toEqual(['0000000000']);
    expect(await simulation.run(store.nodes.tryLock('0000000000'))).toBeUndefined();
    expect(simulation.contenders()).toEqual([]);
  });
});

describe('locking a node', () => {
  it('and changing it is one transaction, without a read', async () => {
    const [id] = await created({});
    const { zooKeeper } = store;
    const requests = zooKeeper.counters.requests;
    const reads = requests['get'] ?? 0;
    const writes = await writesOf(zooKeeper, async () => {
      const handle = given(await simulation.run(store.nodes.tryLock(given(id), { change: { state: 'deleting' } })));
      expect(handle.node.state).toBe('deleting');
      expect(entry(id)).toMatchObject({ version: 1, locked: true, node: { state: 'deleting' } });
    });
    await simulation.settled();
    expect(writes).toBe(1);
    expect(zooKeeper.counters.requests['get'] ?? 0).toBe(reads);
    simulation.expectMirrored(store);
  });

  it('sets the time of a new state only', async () => {
    const [id] = await created({ state_time: 5 });
    const handle = given(await simulation.run(store.nodes.tryLock(given(id), { change: { state: 'ready' } })));
    expect(handle.node.state_time).toBe(5);
    await simulation.run(handle.update({ state: 'used' }));
    expect(handle.node.state_time).toBeCloseTo(simulation.clock.now() / 1000, 0);
    await simulation.run(handle.update({ state: 'deleting', state_time: 7 }));
    expect(handle.node.state_time).toBe(7);
  });

  it('is not attempted while the lock is contended', async () => {
    const [id] = await created({});
    await simulation.put(`/nodepool/nodes/${given(id)}/lock/aaaa__lock__0000000000`, '');
    const writes = await writesOf(store.zooKeeper, async () => {
      expect(await simulation.run(store.nodes.tryLock(given(id)))).toBeUndefined();
    });
    expect(writes).toBe(0);
  });

  it('of another version than expected fails and changes nothing', async () => {
    const [id] = await created({});
    const from = entry(id);
    await simulation.put(`/nodepool/nodes/${given(id)}`, nodeData({ state: 'used' }));
    expect(
      await simulation.run(store.nodes.tryLock(given(id), { from, change: { allocated_to: 'me' } })),
    ).toBeUndefined();
    expect(simulation.json(`/nodepool/nodes/${given(id)}`)).toMatchObject({ state: 'used', allocated_to: null });
    expect(simulation.contenders()).toEqual([]);
  });

  it('returns undefined for a deleted or missing node', async () => {
    const [id] = await created({});
    const from = entry(id);
    await simulation.run(simulation.other.delete(`/nodepool/nodes/${given(id)}`));
    expect(await simulation.run(store.nodes.tryLock(given(id), { from }))).toBeUndefined();
    expect(await simulation.run(store.nodes.tryLock('0000009999'))).toBeUndefined();
    await expect(simulation.run(store.nodes.lock('0000009999'))).rejects.toThrow(LostOwnershipError);
    expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
  });

  it('does not recreate a deleted node', async () => {
    const [id] = await created({});
    const from = given(await simulation.run(store.nodes.read(given(id))));
    simulation.server.setLag(store.zooKeeper, 20);
    const removal = simulation.other.delete(`/nodepool/nodes/${given(id)}`);
    const attempt = store.nodes.tryLock(given(id), { from, change: { comment: 'mine' } });
    const [, handle] = await simulation.run(Promise.all([removal, attempt]));
    expect(handle).toBeUndefined();
    expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
  });

  it('fails without recreating the node when that is deleted during the wait', async () => {
    const [id] = await created({});
    const waiting = store.nodes.lock(given(id));
    const refused = expect(waiting).rejects.toThrow(LostOwnershipError);
    // After the node was read, before the contender is created.
    await simulation.clock.advance(1);
    await simulation.run(Promise.all([simulation.other.delete(`/nodepool/nodes/${given(id)}`), refused]));
    await simulation.settled();
    expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
    expect([...store.nodes.corrupt()]).toEqual([]);
  });

  it('of several nodes locks all or none', async () => {
    const [a, b, c] = (await created({}, {}, {})).map((id) => given(id));
    const held = given(await simulation.run(store.nodes.tryLock(given(b))));
    const all = [given(a), given(b), given(c)].map((id) => ({ id, change: { comment: 'mine' } }));
    expect(await simulation.run(store.nodes.tryLockAll(all))).toBeUndefined();
    expect(simulation.contenders()).toEqual([held.lock.contender]);
    await simulation.run(held.release());
    const handles = given(await simulation.run(store.nodes.tryLockAll(all)));
    expect(handles.map(({ id, node }) => [id, node.comment])).toEqual([
      [a, 'mine'],
      [b, 'mine'],
      [c, 'mine'],
    ]);
    expect(await simulation.run(store.nodes.tryLockAll([]))).toEqual([]);
  });

  it('with a wait ends with the record that the last holder left', async () => {
    const [id] = await created({});
    const handle = given(await simulation.run(store.nodes.tryLock(given(id))));
    const waiting = store.nodes.lock(given(id));
    await simulation.settled();
    expect(simulation.contenders()).toHaveLength(2);
    await simulation.run(handle.release({ comment: 'from the last one' }));
    const next = await simulation.run(waiting);
    expect(next.node.comment).toBe('from the last one');
    await simulation.run(next.update({ comment: 'mine' }));
    await simulation.run(next.release());
    expect(entry(id)).toMatchObject({ locked: false, node: { comment: 'mine' } });
  });
});

describe('the lock holder', () => {
  async function held(): Promise<{ id: string; path: string; handle: Awaited<ReturnType<Store['nodes']['lock']>> }> {
    const [id] = await created({});
    const handle = given(await simulation.run(store.nodes.tryLock(given(id))));
    return { id: given(id), path: `/nodepool/nodes/${given(id)}`, handle };
  }

  it('writes in the order of its calls', async () => {
    const { path, handle } = await held();
    await simulation.run(
      Promise.all([
        handle.update({ comment: 'one', hostname: 'a' }),
        handle.update({ comment: 'two' }),
        handle.release({ comment: 'three' }),
      ]),
    );
    expect(simulation.json(path)).toMatchObject({ comment: 'three', hostname: 'a' });
    expect(simulation.contenders()).toEqual([]);
  });

  it('rejects a change that no record can have, and writes the next one', async () => {
    const { path, handle } = await held();
    const invalid = handle.update({ state: 'odd' as 'used', comment: 'odd' });
    await expect(simulation.run(invalid)).rejects.toThrow('the record cannot be changed');
    await simulation.run(handle.update({ comment: 'next' }));
    expect(simulation.json(path)).toMatchObject({ state: 'ready', comment: 'next' });
  });

  it('preserves unknown fields in every operation', async () => {
    const { path, handle } = await held();
    await simulation.run(handle.release());
    await simulation.put(path, { ...nodeData(), flavour: { big: 1 }, comment: { odd: true } });
    const again = given(await simulation.run(store.nodes.tryLock(handle.id, { change: { state: 'used' } })));
    await simulation.run(again.update({ state: 'deleting' }));
    await simulation.run(again.release({ hostname: 'h' }));
    expect(simulation.json(path)).toMatchObject({ flavour: { big: 1 }, comment: { odd: true }, hostname: 'h' });
  });

  it('never overwrites a concurrent write', async () => {
    const { path, handle } = await held();
    await simulation.put(path, nodeData({ comment: 'an operator was here' }));
    await expect(simulation.run(handle.update({ comment: 'mine' }))).rejects.toThrow(LostOwnershipError);
    await expect(simulation.run(handle.release({ comment: 'mine' }))).rejects.toThrow(LostOwnershipError);
    await expect(simulation.run(handle.remove())).rejects.toThrow(LostOwnershipError);
    expect(simulation.json(path)).toMatchObject({ comment: 'an operator was here' });
    await simulation.run(handle.lock.release());
    expect(simulation.contenders()).toEqual([]);
  });

  it('cannot write after its contender was deleted', async () => {
    const { path, handle } = await held();
    await simulation.run(simulation.other.delete(handle.lock.contender));
    await expect(simulation.run(handle.update({ comment: 'mine' }))).rejects.toThrow(LostOwnershipError);
    expect(simulation.json(path)).toMatchObject({ comment: null });
  });

  it('cannot write after it released the lock', async () => {
    const { handle } = await held();
    await simulation.run(handle.release());
    await expect(simulation.run(handle.update({ comment: 'late' }))).rejects.toThrow(LostOwnershipError);
  });

  it('never exposes an unlocked record without its last change', async () => {
    const { id, handle } = await held();
    const seen: string[] = [];
    store.nodes.onChange(({ after }) => seen.push(`${String(after?.node.state)} ${String(after?.locked)}`));
    await simulation.run(handle.update({ state: 'building' }));
    await simulation.run(handle.release({ state: 'used' }));
    await simulation.settled();
    expect(seen).toEqual(['building true', 'used false']);
    expect(entry(id).locked).toBe(false);
  });

  it('deletes the record with its lock in one transaction', async () => {
    const { path, handle } = await held();
    const seen: unknown[] = [];
    store.nodes.onChange(({ after }) => seen.push(after));
    expect(await writesOf(store.zooKeeper, () => simulation.run(handle.remove()))).toBe(1);
    await simulation.settled();
    expect(seen).toEqual([undefined]);
    expect(simulation.paths(path)).toEqual([]);
  });

  it('keeps a record in state deleted while other clients wait for the lock', async () => {
    const { id, path, handle } = await held();
    const waiting = store.nodes.lock(id);
    await simulation.settled();
    await simulation.run(handle.remove());
    const next = await simulation.run(waiting);
    expect(next.node.state).toBe('deleted');
    await simulation.run(next.remove());
    expect(simulation.paths(path)).toEqual([]);
  });
});

describe('a read past the cache', () => {
  it('returns the present state of the server, which can be locked', async () => {
    const [id] = await created({});
    const fresh = given(await simulation.run(store.nodes.read(given(id))));
    expect(fresh).toEqual(entry(id));
    expect(await simulation.run(store.nodes.read('0000009999'))).toBeUndefined();
    const handle = given(await simulation.run(store.nodes.tryLock(given(id), { from: fresh })));
    expect(given(await simulation.run(store.nodes.read(given(id)))).locked).toBe(true);
    await simulation.run(handle.release());
  });
});
