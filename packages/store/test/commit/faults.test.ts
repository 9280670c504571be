/** Lost sessions and lost answers in the middle of each operation. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { LostOwnershipError, type AcceptedRequest, type NodeHandle, type Store } from '@nodepool/store';
import { Simulation, given, nodeData, submitted } from '../simulation.js';

let simulation: Simulation;
let zooKeeper: ZooKeeper;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  zooKeeper = simulation.client();
  store = await simulation.store(zooKeeper);
});

afterEach(() => simulation.close());

/** An accepted request with one node that is being launched. */
interface Work {
  readonly accepted: AcceptedRequest;
  readonly node: NodeHandle;
}

async function begin(): Promise<Work> {
  const entry = await submitted(simulation, store);
  const plan = nodeData({ state: 'init', allocated_to: entry.id });
  const accepted = given(await simulation.run(store.requests.accept(entry, { create: [plan], reuse: [] })));
  const id = given(accepted.created[0]);
  const node = given(await simulation.run(store.nodes.tryLock(id, { change: { state: 'building' } })));
  return { accepted, node };
}

/** Every operation on owned records. */
const OPERATIONS: readonly [string, (work: Work) => Promise<unknown>][] = [
  ['the update of a node', ({ node }) => node.update({ external_id: 'new' })],
  ['the release of a node', ({ node }) => node.release({ external_id: 'new' })],
  ['the release of a node as it is', ({ node }) => node.release()],
  ['the removal of a node', ({ node }) => node.remove()],
  [
    'the fulfilment of a request',
    ({ accepted, node }) => accepted.request.fulfil([{ handle: node, change: { external_id: 'new' } }]),
  ],
  [
    'the return of a request',
    ({ accepted, node }) => accepted.request.release({ state: 'requested' }, [{ handle: node }]),
  ],
];

/** Returns the server's content without the parts that differ between runs. */
function outcome(): unknown {
  return {
    records: [...simulation.server.dump()]
      .filter(([path]) => /^\/nodepool\/(nodes|requests)\/[^/]+$/.test(path))
      .map(([path, { data, stat }]) => [
        path,
        stat.version,
        new TextDecoder().decode(data).replace(/"state_time": [\d.]+/, ''),
      ]),
    contenders: simulation.contenders().length,
  };
}

describe.each(OPERATIONS)('%s', (_, operate) => {
  async function outcomeWithoutFault(): Promise<unknown> {
    const own = simulation;
    simulation = new Simulation();
    const ownStore = store;
    store = await simulation.store();
    await simulation.run(operate(await begin()));
    await simulation.settled();
    const result = outcome();
    await simulation.close();
    simulation = own;
    store = ownStore;
    return result;
  }

  it.each(['before-applied', 'after-applied'] as const)(
    'has the usual result when the connection is lost %s',
    async (when) => {
      const expected = await outcomeWithoutFault();
      const work = await begin();
      simulation.server.loseNextWrite(zooKeeper, when);
      await simulation.run(operate(work));
      await simulation.settled();
      expect(outcome()).toEqual(expected);
      simulation.expectMirrored(store);
    },
  );

  it('can be followed by another write when its answer was lost', async () => {
    const work = await begin();
    simulation.server.loseNextWrite(zooKeeper, 'after-applied');
    await simulation.run(operate(work));
    if (work.node.lock.lost.aborted) return;
    await simulation.run(work.node.update({ comment: 'next' }));
    expect(simulation.json(`/nodepool/nodes/${work.node.id}`)).toMatchObject({ comment: 'next' });
  });

  it('fails without a write when the session has expired', async () => {
    const work = await begin();
    const before = outcome();
    simulation.server.expireSession(zooKeeper);
    await expect(simulation.run(operate(work))).rejects.toThrow(LostOwnershipError);
    await simulation.clock.advance(30_000);
    expect(outcome()).toEqual({ ...Object(before), contenders: 0 });
    simulation.expectMirrored(store);
  });

  it('is applied completely or not at all when the session expires meanwhile', async () => {
    const expected = await outcomeWithoutFault();
    const work = await begin();
    const before = outcome();
    simulation.server.loseNextWrite(zooKeeper, 'after-applied');
    const operation = operate(work);
    const settledOperation = operation.then(
      () => 'done',
      (error: unknown) => error,
    );
    const stop = simulation.server.onCommit(() => {
      // Partitioned right after it was applied, so that asking for the outcome fails.
      simulation.server.partition(zooKeeper);
      stop();
    });
    const result = await simulation.run(settledOperation);
    expect(result).toBeInstanceOf(LostOwnershipError);
    simulation.server.heal(zooKeeper);
    await simulation.clock.advance(60_000);
    expect(outcome()).toEqual({ ...Object(expected), contenders: 0 });
    expect(outcome()).not.toEqual(before);
    simulation.expectMirrored(store);
  });
});

describe('an update that is aborted', () => {
  it.each([0, 1, 2, 3])('after %d ms has resolved if, and only if, it was applied', async (ms) => {
    const { node } = await begin();
    const abort = new AbortController();
    const update = node.update({ comment: 'written' }, { signal: abort.signal }).then(
      () => true,
      () => false,
    );
    if (ms > 0) await simulation.clock.advance(ms);
    abort.abort(new Error('enough'));
    const resolved = await simulation.run(update);
    await simulation.settled();
    const comment = resolved ? 'written' : null;
    expect(simulation.json(`/nodepool/nodes/${node.id}`)).toMatchObject({ comment });
    await simulation.run(node.update({ hostname: 'next' }));
    expect(simulation.json(`/nodepool/nodes/${node.id}`)).toMatchObject({ comment, hostname: 'next' });
  });
});

it('an update whose answer is lost is not applied if another program has written the record meanwhile', async () => {
  const { node } = await begin();
  const path = `/nodepool/nodes/${node.id}`;
  simulation.server.loseNextWrite(zooKeeper, 'before-applied');
  const update = node.update({ comment: 'own' }).catch((error: unknown) => error);
  const theirs = nodeData({ state: 'building', comment: 'theirs' });
  // The other program does not hold the lock, and writes any version, as Zuul does.
  await simulation.put(path, theirs);
  expect(await simulation.run(update)).toBeInstanceOf(LostOwnershipError);
  expect(simulation.json(path)).toMatchObject({ comment: 'theirs' });
  await simulation.settled();
  simulation.expectMirrored(store);
});

it('a node that another program has written without its lock is not removed', async () => {
  const { node } = await begin();
  const path = `/nodepool/nodes/${node.id}`;
  await simulation.put(path, nodeData({ state: 'used', comment: 'theirs' }));
  await expect(simulation.run(node.remove())).rejects.toThrow(LostOwnershipError);
  expect(simulation.json(path)).toMatchObject({ comment: 'theirs' });
});

describe('locking when the session expires', () => {
  it.each([0, 1, 2, 3])('after %d ms holds a lock of the next session, or none', async (ms) => {
    const [id] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store);
    for (const take of [
      () => store.nodes.tryLock(given(id), { change: { state: 'deleting' } }),
      () => store.requests.accept(entry, { create: [nodeData({ state: 'init' })], reuse: [] }),
    ]) {
      const taken = take().then(
        (handle) => handle,
        () => undefined,
      );
      if (ms > 0) await simulation.clock.advance(ms);
      simulation.server.expireSession(zooKeeper);
      const handle = await simulation.run(taken);
      await simulation.clock.advance(30_000);
      const lock = handle === undefined ? undefined : 'request' in handle ? handle.request.lock : handle.lock;
      const isHeld = lock?.lost.aborted === false;
      expect(simulation.contenders()).toEqual(isHeld ? [lock.contender] : []);
      if (isHeld) expect(lock.session).toBe(zooKeeper.session);
      simulation.expectMirrored(store);
      await simulation.run(lock?.release() ?? Promise.resolve());
    }
  });
});

describe('locking while the connection is lost', () => {
  it.each(['before-applied', 'after-applied'] as const)('leaves no lock, %s', async (when) => {
    const [id] = await simulation.run(store.nodes.create([nodeData()]));
    const entry = await submitted(simulation, store);
    for (const take of [
      () => store.nodes.tryLock(given(id), { change: { state: 'deleting' } }),
      () => store.requests.accept(entry, { create: [nodeData({ state: 'init' })], reuse: [] }),
    ]) {
      simulation.server.loseNextWrite(zooKeeper, when);
      const result = await simulation.run(
        take().then(
          (taken) => taken ?? 'refused',
          () => 'failed',
        ),
      );
      await simulation.clock.advance(5000);
      if (typeof result === 'string') expect(simulation.contenders()).toEqual([]);
      else {
        expect(simulation.contenders()).toHaveLength(1);
        await simulation.run('request' in result ? result.request.release({}) : result.release());
      }
      simulation.expectMirrored(store);
    }
  });

  it('can be retried by another client immediately after the session expired', async () => {
    const work = await begin();
    const second = await simulation.store();
    simulation.server.expireSession(zooKeeper);
    await simulation.settled();
    const entry = given(second.requests.get(work.accepted.request.id));
    expect(entry).toMatchObject({ locked: false, request: { state: 'pending' } });
    const taken = given(await simulation.run(second.requests.accept(entry, { create: [], reuse: [] })));
    const node = given(await simulation.run(second.nodes.tryLock(work.node.id)));
    await simulation.run(taken.request.fulfil([{ handle: node }]));
    await expect(simulation.run(work.node.update({ comment: 'late' }))).rejects.toThrow(LostOwnershipError);
    expect(simulation.json(`/nodepool/nodes/${work.node.id}`)).toMatchObject({ state: 'ready', comment: null });
  });
});

describe('a store', () => {
  it('is incomplete while it is disconnected, and mirrors the server again afterwards', async () => {
    const reported: boolean[] = [];
    store.onComplete((complete) => reported.push(complete));
    await simulation.run(store.nodes.create([nodeData(), nodeData()]));
    simulation.server.partition(zooKeeper);
    await simulation.settled();
    expect(store.complete).toBe(false);
    await simulation.put('/nodepool/nodes/0000000000', nodeData({ state: 'used' }));
    await simulation.run(simulation.other.delete('/nodepool/nodes/0000000001'));
    simulation.server.heal(zooKeeper);
    await simulation.clock.advance(60_000);
    expect(store.complete).toBe(true);
    expect(reported).toEqual([false, true]);
    expect([...store.nodes.inState('used')].map(({ id }) => id)).toEqual(['0000000000']);
    simulation.expectMirrored(store);
  });

  it('follows a server that was reset to an older state', async () => {
    await simulation.run(store.nodes.create([nodeData()]));
    const backup = simulation.server.snapshot();
    await simulation.run(store.nodes.create([nodeData()]));
    await simulation.put('/nodepool/nodes/0000000000', nodeData({ state: 'used' }));
    simulation.server.restore(backup);
    await simulation.clock.advance(60_000);
    simulation.expectMirrored(store);
    expect([...store.nodes.all()].map(({ node }) => node.state)).toEqual(['ready']);
  });

  it('creates its root znodes once the server is reachable', async () => {
    const empty = new Simulation();
    empty.server.stop();
    const client = empty.client({ operationTimeoutMs: 1000 });
    const late = empty.store(client);
    const stopped = new Promise<void>((resolve) =>
      empty.clock.schedule(10_000, () => {
        empty.server.start();
        resolve();
      }),
    );
    await Promise.all([late, stopped]);
    await empty.clock.advance(10_000);
    expect(empty.paths('/nodepool')).toEqual([
      '/nodepool',
      '/nodepool/components',
      '/nodepool/components/builder',
      '/nodepool/components/launcher',
      '/nodepool/components/pool',
      '/nodepool/elections',
      '/nodepool/images',
      '/nodepool/installation',
      '/nodepool/nodes',
      '/nodepool/requests',
      '/nodepool/requests-lock',
    ]);
    await empty.close();
  });
});
