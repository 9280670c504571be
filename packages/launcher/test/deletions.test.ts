/** Deletions go on, whatever others do to the records meanwhile. */

import { expect, it } from '@jest/globals';
import { World, pool, provider } from './support/world.js';

it('deletes a node whose requestor wrote into it while it was being deleted', async () => {
  const world = new World();
  world.cloud.configure({ deleteTimeMs: [5000, 5000] });
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const id = await world.during(world.requestor.submit(['small']));
  await world.until('it is fulfilled', () => world.records('/nodepool/requests').get(id)?.state === 'fulfilled');
  const taken = await world.during(world.requestor.take(id));
  const [node] = taken.ids;
  await world.during(taken.locks[0]!.release());
  await world.until('it is being deleted', () => world.nodes().get(node!)?.state === 'deleting');
  await world.clock.advance(1000);
  await world.during(world.requestor.change(`/nodepool/nodes/${node!}`, { state: 'used' }));
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(world.cloud.existingInstances()).toEqual([]);
  expect(await world.end()).toEqual([]);
});
