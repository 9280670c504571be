/** The watch events of one transaction from the view of a listener. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { settleEvents } from '@nodepool/store';
import { Simulation, nodeData } from '../simulation.js';

let simulation: Simulation;
beforeEach(() => {
  simulation = new Simulation();
});
afterEach(() => simulation.close());

it('settleEvents yields until all changes of a transaction are applied', async () => {
  const store = await simulation.store();
  const other = await simulation.store();
  const atOnce: number[] = [];
  const settled: number[] = [];
  store.nodes.onChange(() => {
    atOnce.push(store.nodes.size);
    void settleEvents().then(() => settled.push(store.nodes.size));
  });
  await simulation.run(other.nodes.create([nodeData(), nodeData(), nodeData()]));
  await simulation.settled();
  expect(atOnce.slice(0, 3)).toEqual([1, 2, 3]);
  expect(settled.slice(0, 3)).toEqual([3, 3, 3]);
});
