/** Empty records of nodes, which a contender for the lock of a deleted record leaves behind. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { Store } from '@nodepool/store';
import { Simulation } from '../simulation.js';

const NODE = '/nodepool/nodes/0000000007';

let simulation: Simulation;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  store = await simulation.store();
});

afterEach(() => simulation.close());

async function create(path: string, text = ''): Promise<void> {
  await simulation.run(simulation.other.create(path, new TextEncoder().encode(text)));
  await simulation.settled();
}

const removeEmpty = (): Promise<void> => simulation.run(store.nodes.removeEmpty());
const remains = (): boolean => simulation.server.dump().has(NODE);

it('are removed with their locks if two searches find them unchanged', async () => {
  await create(NODE);
  await create(`${NODE}/lock`);
  await removeEmpty();
  expect(remains()).toBe(true);
  await removeEmpty();
  expect(remains()).toBe(false);
});

it('remain if they were created again between the searches', async () => {
  await create(NODE);
  await removeEmpty();
  await simulation.run(simulation.other.delete(NODE));
  await create(NODE);
  await removeEmpty();
  expect(remains()).toBe(true);
  await removeEmpty();
  expect(remains()).toBe(false);
});

it.each([
  ['unreadable content', async () => create(NODE, 'no JSON')],
  [
    'a contender',
    async () =>
      create(NODE)
        .then(() => create(`${NODE}/lock`))
        .then(() => create(`${NODE}/lock/a__lock__0000000000`)),
  ],
  ['a znode of another program', async () => create(NODE).then(() => create(`${NODE}/notes`))],
])('remain if they have %s', async (_what, prepare) => {
  await prepare();
  await removeEmpty();
  await removeEmpty();
  expect(remains()).toBe(true);
});
