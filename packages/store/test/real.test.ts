/** The life of a request and its node on a real server. */

import { expect, it } from '@jest/globals';
import type { NodeEntry, Store } from '@nodepool/store';
import { realStores } from './real-stores.js';
import { expectSameNodes, given, nodeData, requestData } from './simulation.js';

const start = realStores();

/** Resolves once the condition holds after a change of the store's nodes. */
function until(store: Store, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (holds()) {
      resolve();
      return;
    }
    const stops = [store.nodes, store.requests].map((records) =>
      records.onChange(() => {
        if (!holds()) return;
        for (const stop of stops) stop();
        resolve();
      }),
    );
  });
}

it('a request is served by one store, and another store gets its nodes back', async () => {
  const [a, b] = [await start(), await start()];
  const id = await a.requests.submit(requestData({ node_types: ['small', 'large'] }), { priority: 100 });
  await until(b, () => b.requests.get(id) !== undefined);
  const plan = [
    nodeData({ state: 'init', allocated_to: id }),
    nodeData({ state: 'init', allocated_to: id, type: ['large'] }),
  ];
  const both = await Promise.all(
    [a, b].map(({ requests }) => requests.accept(given(requests.get(id)), { create: plan, reuse: [] })),
  );
  expect(both.filter((accepted) => accepted === undefined)).toHaveLength(1);
  const winner = both[0] === undefined ? b : a;
  const accepted = given(both[0] ?? both[1]);
  const handles = given(
    await winner.nodes.tryLockAll(accepted.created.map((node) => ({ id: node, change: { state: 'building' } }))),
  );
  await given(handles[0]).update({ external_id: 'instance' });
  await accepted.request.fulfil(handles.map((handle) => ({ handle })));
  const loser = winner === a ? b : a;
  const isHandedOut = (entry: NodeEntry): boolean => entry.node.state === 'ready' && !entry.locked;
  await until(loser, () => loser.nodes.allocatedTo(id).filter(isHandedOut).length === 2);
  await until(loser, () => loser.requests.get(id)?.request.state === 'fulfilled');
  expect(loser.requests.get(id)?.request.nodes).toEqual(accepted.created);

  await loser.requests.remove(id);
  for (const node of accepted.created) {
    const handle = given(await loser.nodes.tryLock(node, { change: { state: 'used' } }));
    await handle.update({ state: 'deleting' });
    await handle.remove();
  }
  await until(winner, () => winner.nodes.size === 0 && winner.requests.size === 0);
  expect(await winner.nodes.readIds()).toEqual([]);
});

it('a store mirrors ten thousand nodes, two hundred of them in one request', async () => {
  const a = await start();
  for (let made = 0; made < 10_000; made += 500) {
    await a.nodes.create(Array.from({ length: 500 }, () => nodeData()));
  }
  const id = await a.requests.submit(requestData({ node_types: Array<string>(200).fill('small') }), { priority: 100 });
  const reuse = [...a.nodes.available({ label: 'small', provider: 'cloud', pool: 'main' })].slice(0, 200);
  const accepted = given(await a.requests.accept(given(a.requests.get(id)), { create: [], reuse }));
  await accepted.request.fulfil(accepted.reused.map((handle) => ({ handle })));
  const b = await start();
  expect(b.nodes.size).toBe(10_000);
  expect(b.nodes.allocatedTo(id).map((entry) => entry.id)).toEqual(reuse.map((entry) => entry.id));
  await until(a, () => [...a.nodes.all()].every(({ locked }) => !locked));
  expectSameNodes(b, a);
});
