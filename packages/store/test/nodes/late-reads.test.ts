/** Tests of records that other launchers handle: when they are read, and what cannot rely on them meanwhile. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NodeHandle, Store } from '@nodepool/store';
import { Simulation, given, nodeData, requestData } from '../simulation.js';

const OTHERS = 'other-launcher';

let simulation: Simulation;
/** The store of a launcher that looks on, and the store of the launcher that handles the records. */
let store: Store;
let other: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
  other = await simulation.store();
});

afterEach(() => simulation.close());

/** Reads late what `OTHERS` handles. */
function readLate(): void {
  store.nodes.delayReads({ mayBeOld: () => true, has: ({ launcher }) => launcher === OTHERS });
  store.requests.delayReads();
}

/** The other launcher accepts a request with a new node, which it creates locked. */
async function accepted(): Promise<{ readonly requestId: string; readonly node: NodeHandle; fulfil(): Promise<void> }> {
  const requestId = await simulation.run(other.requests.submit(requestData(), { priority: 200 }));
  // The other launcher knows the highest id, so that it can create nodes locked.
  if (other.nodes.size === 0) {
    const [first] = await simulation.run(other.nodes.create([nodeData({ launcher: OTHERS })]));
    await simulation.settled();
    await simulation.run(given(await simulation.run(other.nodes.tryLock(given(first)))).remove());
  }
  await simulation.settled();
  const start = { changes: [{ state: 'building' as const }], isConfirmed: () => true };
  const create = [nodeData({ state: 'init', launcher: OTHERS, allocated_to: requestId })];
  const entry = given(other.requests.get(requestId));
  const { request, started } = given(await simulation.run(other.requests.accept(entry, { create, reuse: [], start })));
  const [handle] = started;
  const node = given(handle);
  return { requestId, node, fulfil: () => request.fulfil([{ handle: node }]) };
}

describe('a record that is written and unlocked in one transaction', () => {
  it('is never shown unlocked with its former content', async () => {
    const { requestId, node, fulfil } = await accepted();
    await simulation.settled();
    const shown: unknown[] = [];
    store.nodes.onChange(({ after }) => shown.push([after?.node.state, after?.locked]));
    store.requests.onChange(({ after }) => shown.push([after?.request.state, after?.locked]));
    await simulation.run(fulfil());
    await simulation.settled();
    expect(shown.sort()).toEqual([
      ['fulfilled', false],
      ['ready', false],
    ]);
    expect([store.nodes.get(node.id)?.locked, store.requests.get(requestId)?.locked]).toEqual([false, false]);
  });

  it('can be locked before it is shown unlocked', async () => {
    const { node, fulfil } = await accepted();
    await simulation.settled();
    readLate();
    await simulation.run(fulfil());
    await simulation.settled();
    expect(store.nodes.get(node.id)).toMatchObject({ locked: true, node: { state: 'building' } });
    const handle = given(await simulation.run(store.nodes.tryLock(node.id, { change: { state: 'in-use' } })));
    expect(handle.node).toMatchObject({ state: 'in-use', launcher: OTHERS });
  });
});

describe('records that other launchers handle', () => {
  it('are read once for all changes within a second', async () => {
    readLate();
    const { requestId, node, fulfil } = await accepted();
    await simulation.settled();
    expect(store.nodes.get(node.id)).toMatchObject({ locked: true, node: { state: 'building' } });
    expect(store.requests.get(requestId)).toMatchObject({ locked: true, request: { state: 'requested' } });
    await simulation.clock.advance(1000);
    expect(store.requests.get(requestId)).toMatchObject({ locked: true, request: { state: 'pending' } });
    const states: unknown[] = [];
    store.nodes.onChange(({ after }) => states.push(after?.node.state));
    await simulation.run(node.update({ hostname: 'a' }));
    await simulation.run(node.update({ hostname: 'b' }));
    await simulation.run(fulfil());
    await simulation.clock.advance(1000);
    expect(states).toEqual(['ready']);
    expect(store.nodes.get(node.id)).toMatchObject({ locked: false, node: { state: 'ready', hostname: 'b' } });
    expect(store.requests.get(requestId)).toMatchObject({ locked: false, request: { state: 'fulfilled' } });
  });

  it('are not reported with changes that were not read before they are deleted', async () => {
    readLate();
    const { node } = await accepted();
    await simulation.settled();
    const states: unknown[] = [];
    store.nodes.onChange(({ after }) => states.push(after?.node.state));
    await simulation.run(node.update({ hostname: 'a' }));
    await simulation.run(node.remove());
    await simulation.clock.advance(2000);
    expect(states).toEqual([undefined]);
  });

  it('show at their deletion whether another launcher may have changed them before', async () => {
    readLate();
    const free: boolean[] = [];
    store.requests.onChange(({ after, wasFree = false }) => {
      if (after === undefined) free.push(wasFree);
    });
    const waiting = await simulation.run(other.requests.submit(requestData(), { priority: 200 }));
    await simulation.settled();
    await simulation.run(other.requests.remove(waiting));
    await simulation.settled();
    expect(free).toEqual([true]);

    const held = await accepted();
    await simulation.settled();
    await simulation.run(other.requests.remove(held.requestId));
    await simulation.settled();
    // All events arrive together, or none of them.
    for (const how of ['silent', 'cut'] as const) {
      const requestId = await simulation.run(other.requests.submit(requestData(), { priority: 200 }));
      await simulation.settled();
      simulation.server.partition(store.zooKeeper, how);
      const accepting = other.requests.accept(given(other.requests.get(requestId)), { create: [], reuse: [] });
      await simulation.run(given(await simulation.run(accepting)).request.release({ state: 'failed' }));
      await simulation.run(other.requests.remove(requestId));
      simulation.server.heal(store.zooKeeper);
      await simulation.clock.advance(2000);
    }
    expect(free).toEqual([true, false, false, false]);
  });

  it('are in the cache after a refresh', async () => {
    readLate();
    const { node } = await accepted();
    await simulation.settled();
    await simulation.run(node.update({ hostname: 'a' }));
    await simulation.settled();
    expect(store.nodes.get(node.id)?.node.hostname).toBeNull();
    await simulation.run(Promise.resolve(store.nodes.refresh()));
    expect([store.nodes.get(node.id)?.node.hostname, store.nodes.refresh()]).toEqual(['a', undefined]);
  });

  it('are in the cache when a read past it is answered', async () => {
    const { node } = await accepted();
    await simulation.settled();
    readLate();
    await simulation.run(node.update({ hostname: 'a' }));
    await simulation.settled();
    expect(store.nodes.get(node.id)?.node.hostname).toBeNull();
    await simulation.run(store.requests.read('200-9999999999'));
    expect(store.nodes.get(node.id)?.node.hostname).toBe('a');
  });
});

describe('records of this launcher and of no launcher', () => {
  it('are read at once', async () => {
    readLate();
    const [mine = '', theirs = ''] = await simulation.run(
      other.nodes.create([nodeData({ launcher: 'this-launcher' }), nodeData({ launcher: OTHERS })]),
    );
    await simulation.settled();
    expect([store.nodes.get(mine)?.node.state, store.nodes.get(theirs)?.node.state]).toEqual(['ready', 'ready']);
    for (const id of [mine, theirs]) await simulation.run(other.nodes.tryLock(id, { change: { state: 'in-use' } }));
    await simulation.settled();
    expect([store.nodes.get(mine)?.node.state, store.nodes.get(theirs)?.node.state]).toEqual(['in-use', 'ready']);
    expect([store.nodes.get(mine)?.locked, store.nodes.get(theirs)?.locked]).toEqual([true, true]);
  });
});
