/** Durable locks of nodes: held by an owner, whatever happens to sessions and processes. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { CorruptRecordError, LostOwnershipError, type NodeHandle, type Store } from '@nodepool/store';
import { Simulation, given, nodeData } from '../simulation.js';

const OWNER = 'NodePool:metastatic:cloud';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});
afterEach(() => simulation.close());

async function lockedNodes(count: number): Promise<readonly NodeHandle[]> {
  const ids = await simulation.run(store.nodes.create(Array.from({ length: count }, () => nodeData())));
  const targets = ids.map((id) => ({ id, change: { state: 'in-use' } as const }));
  return given(await simulation.run(store.nodes.tryLockAll(targets, { owner: OWNER })));
}

it('a node counts as locked in every store, also after the session of its holder', async () => {
  const client = simulation.client();
  const holder = await simulation.store(client);
  const [id = ''] = await simulation.run(holder.nodes.create([nodeData()]));
  await simulation.run(holder.nodes.tryLockAll([{ id, change: { state: 'in-use' } }], { owner: OWNER }));
  simulation.server.expireSession(client);
  await simulation.clock.advance(60_000);
  simulation.expectMirrored(store);
  expect(store.nodes.get(id)).toMatchObject({ locked: true, node: { state: 'in-use' } });
  expect(await simulation.run(store.nodes.tryLock(id))).toBeUndefined();
  expect(await simulation.run(store.nodes.holder(id))).toMatchObject({ identifier: OWNER, persistent: true });
  expect([...store.nodes.available({ label: 'small', provider: 'cloud', pool: 'main' })]).toEqual([]);
});

it('only the owner adopts it, and the former holder cannot write any more', async () => {
  const [held] = await lockedNodes(1);
  const { id } = given(held);
  expect(await simulation.run(store.nodes.adopt(id, `${OWNER}-2`))).toBeUndefined();
  const adopted = given(await simulation.run(store.nodes.adopt(id, OWNER)));
  await expect(simulation.run(given(held).update({ comment: 'late' }))).rejects.toThrow(LostOwnershipError);
  await simulation.run(given(held).lock.release());
  await simulation.run(adopted.unlock({ state: 'used' }));
  await simulation.settled();
  expect(store.nodes.get(id)).toMatchObject({ locked: false, node: { state: 'used', comment: null } });
  expect(await simulation.run(store.nodes.adopt(id, OWNER))).toBeUndefined();
  expect(await simulation.run(store.nodes.adopt('0000000099', OWNER))).toBeUndefined();
  expect(simulation.json('/nodepool/nodes/0000000099')).toBeUndefined();
});

it('the nodes of an owner are found among all nodes', async () => {
  const held = await lockedNodes(3);
  await simulation.run(store.nodes.create([nodeData()]));
  const [other = '', look = ''] = await simulation.run(store.nodes.create([nodeData(), nodeData()]));
  await simulation.run(store.nodes.tryLockAll([{ id: other }], { owner: `${OWNER}2` }));
  await simulation.run(store.nodes.lock(look, { identifier: OWNER }));
  const ids = held.map(({ id }) => id);
  expect(await simulation.run(store.nodes.heldBy(OWNER))).toEqual(ids);
  expect(await simulation.run(store.nodes.heldBy(OWNER, { among: [other, ids[1] ?? ''] }))).toEqual([ids[1]]);
});

it('all locks and further operations are one transaction', async () => {
  const ids = await simulation.run(store.nodes.create([nodeData(), nodeData()]));
  const after = [{ type: 'delete', path: '/nodepool/requests/200-0000000000' }] as const;
  const locking = store.nodes.tryLockAll(
    ids.map((id) => ({ id })),
    { owner: OWNER, after },
  );
  await expect(simulation.run(locking)).rejects.toMatchObject({ code: 'no-node' });
  expect(simulation.contenders()).toEqual([]);
});

it.each(['before-applied', 'after-applied'] as const)(
  'a last change whose answer is lost %s is written once, and the lock is released with it',
  async (when) => {
    const [held] = await lockedNodes(1);
    simulation.server.loseNextWrite(store.zooKeeper, when);
    await simulation.run(given(held).unlock({ state: 'hold', comment: 'debugging' }));
    expect(simulation.json(`/nodepool/nodes/${given(held).id}`)).toMatchObject({ state: 'hold', comment: 'debugging' });
    expect(simulation.contenders()).toEqual([]);
  },
);

it('a change is not reported as written if another process has released the lock before it', async () => {
  const [held] = await lockedNodes(1);
  const { id } = given(held);
  const other = await simulation.store();
  const shared = given(await simulation.run(other.nodes.adopt(id, OWNER, { takeOver: false })));
  simulation.server.loseNextWrite(store.zooKeeper, 'before-applied');
  const holding = given(held).unlock({ state: 'hold' });
  holding.catch(() => undefined);
  await simulation.run(shared.unlock({ state: 'used' }));
  await expect(simulation.run(holding)).rejects.toThrow(LostOwnershipError);
  expect(simulation.json(`/nodepool/nodes/${id}`)).toMatchObject({ state: 'used' });
});

it('the lock of an unreadable node stays with its owner', async () => {
  const [held] = await lockedNodes(1);
  const { id } = given(held);
  await simulation.put(`/nodepool/nodes/${id}`, '{"state":');
  await expect(simulation.run(store.nodes.adopt(id, OWNER))).rejects.toThrow(CorruptRecordError);
  expect(await simulation.run(store.nodes.heldBy(OWNER))).toEqual([id]);
});

it('a node is deleted with its durable lock', async () => {
  const [held] = await lockedNodes(1);
  expect(await simulation.run(given(held).remove())).toBe(true);
  expect(simulation.paths('/nodepool/nodes/')).toEqual([]);
});
