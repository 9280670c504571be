/** Tests that the cost of a record change does not grow with the number of unaffected pools. */

import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { World, pool, provider } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  await world.end();
});

it('a provider of ten pools has as many record listeners as a provider of one pool', async () => {
  const first = provider('first', [pool('main', ['small'])]);
  const { launcher, store } = await world.launcher([first]);
  const nodes = jest.spyOn(store.nodes, 'onChange');
  const requests = jest.spyOn(store.requests, 'onChange');
  const subscriptions = async (name: string, pools: number): Promise<number[]> => {
    nodes.mockClear();
    requests.mockClear();
    const names = Array.from({ length: pools }, (_, index) => `pool-${index}`);
    const added = provider(
      name,
      names.map((each) => pool(each, ['small'])),
    );
    await world.during(launcher.apply(world.config([first, added])));
    await world.until('it serves', () => launcher.ready);
    return [nodes.mock.calls.length, requests.mock.calls.length];
  };
  const one = await subscriptions('one', 1);
  expect(await subscriptions('ten', 10)).toEqual(one);
});
