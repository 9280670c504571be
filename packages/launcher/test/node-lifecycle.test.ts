/** Tests the steps of a node's life. */

import { expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { openStore } from '@nodepool/store';
import { World, pool, provider } from './support/world.js';

it('nodes that are launched, used and deleted take these steps, and so do failed launches', async () => {
  const world = new World();
  const zk = world.server.connect();
  const store = openStore(zk, { clock: world.clock, random: seededRandom(1), identifier: 'test' });
  store.start();
  await world.during(store.ready());
  const steps = new Set<string>();
  store.nodes.onChange(({ before, after }) => {
    if (before === undefined || before.node.state === after?.node.state) return;
    steps.add(`${before.node.state} -> ${after?.node.state ?? 'removed'}`);
  });
  // Steps at the same time would be observed as one.
  world.cloud.configure({ deleteTimeMs: [5000, 5000] });
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const isDone = (id: string): boolean => {
    const state = world.stateOf(id);
    return state === 'fulfilled' || state === 'failed';
  };
  const first = await world.submit(['small']);
  await world.until('it is fulfilled', () => isDone(first));
  await world.giveBack(first);
  world.cloud.configure({
    faults: {
      ...{ 'create-errors': 0, 'lost-answers': 0, 'failed-instances': 1, 'stuck-instances': 0, 'delete-errors': 0 },
      ...{ 'list-errors': 0, 'upload-errors': 0, 'capacity-errors': 0, 'auth-errors': 0 },
    },
  });
  const second = await world.submit(['small']);
  await world.until('it has failed', () => isDone(second));
  await world.until('all nodes are gone', () => world.nodes().size === 0);
  expect([...steps].sort()).toEqual([
    'building -> failed',
    'building -> ready',
    'deleting -> removed',
    'failed -> deleting',
    'in-use -> used',
    'ready -> in-use',
    'used -> deleting',
  ]);
  store.close();
  expect(await world.end()).toEqual([]);
});
