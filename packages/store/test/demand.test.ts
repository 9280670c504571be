/** Records of the demand for labels. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ensurePath } from '@nodepool/zookeeper';
import { Simulation } from './simulation.js';

let simulation: Simulation;
beforeEach(() => {
  simulation = new Simulation();
});
afterEach(() => simulation.close());

const data = { quarters: [[96, 2, [1, 1]]] };

it('are written by one process, and read with their versions, oldest first', async () => {
  const store = await simulation.store();
  const other = await simulation.store();
  const { demand } = store;
  const version = await simulation.run(demand.write('a/b', { day: 10, version: undefined, data }));
  await simulation.run(demand.write('a/b', { day: 9, version: undefined, data: {} }));
  expect(await simulation.run(other.demand.read('a/b'))).toEqual([
    { day: 9, version: 0, data: {} },
    { day: 10, version, data },
  ]);
  expect(await simulation.run(other.demand.read('a'))).toEqual([]);
  const next = await simulation.run(other.demand.write('a/b', { day: 10, version, data: {} }));
  expect(next).toBe(version + 1);
  const lost = { code: 'lost-ownership' };
  await expect(simulation.run(demand.write('a/b', { day: 10, version, data }))).rejects.toMatchObject(lost);
  await expect(simulation.run(demand.write('a/b', { day: 10, version: undefined, data }))).rejects.toMatchObject(lost);
});

it('that cannot be read are replaced', async () => {
  const { demand } = await simulation.store();
  await simulation.run(ensurePath(simulation.other, '/nodepool/demand/small'));
  await simulation.run(simulation.other.create('/nodepool/demand/small/5', Buffer.from('{')));
  const [day] = await simulation.run(demand.read('small'));
  expect(day).toEqual({ day: 5, version: 0, data: {} });
  await simulation.run(demand.write('small', { day: 5, version: 0, data }));
  expect(await simulation.run(demand.read('small'))).toEqual([{ day: 5, version: 1, data }]);
});

it('of old days are deleted, and look-alikes stay', async () => {
  const { demand } = await simulation.store();
  for (const name of ['small/3', 'small/4', 'small/5', 'small/3a', 'small/x3', 'smaller/3']) {
    await simulation.run(ensurePath(simulation.other, `/nodepool/demand/${name}`));
  }
  expect(await simulation.run(demand.removeBefore('small', 5))).toEqual([3, 4]);
  const { children } = await simulation.run(simulation.other.children('/nodepool/demand/small'));
  expect([...children].sort()).toEqual(['3a', '5', 'x3']);
  expect((await simulation.run(simulation.other.children('/nodepool/demand/smaller'))).children).toEqual(['3']);
  expect(await simulation.run(demand.removeBefore('other', 5))).toEqual([]);
});
