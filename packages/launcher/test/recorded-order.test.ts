/** Compares the order of service without fair shares with recorded orders. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { sleep } from '@nodepool/core';
import { pool, provider, World } from './support/world.js';

const FILE = join(__dirname, 'recorded-order.json');
const SEEDS = 10;

/** Runs random requests of several tenants against scarce capacity. Returns their ids in the order of acceptance. */
async function orderOf(seed: number): Promise<readonly string[]> {
  const world = new World(seed);
  const random = seededRandom(seed);
  const upTo = (max: number): number => Math.floor(random.next() * max);
  const accepted: string[] = [];
  const pools = [
    pool('main', ['small', 'large'], { 'max-servers': 4 }),
    pool('spare', ['small'], { 'max-servers': 2 }),
  ];
  const { store } = await world.launcher([provider('demo', pools)]);
  store.requests.onChange(({ id, before, after }) => {
    if (before?.request.state === 'requested' && after?.request.state === 'pending') accepted.push(id);
  });
  let left = 30;
  const end = world.clock.now() + 7_200_000;
  const one = async (): Promise<void> => {
    await sleep(world.clock, upTo(60) * 1000);
    const labels = Array.from({ length: 1 + upTo(4) }, () => (upTo(3) === 0 ? 'large' : 'small'));
    const id = await world.requestor.submit(labels, {
      tenant: `tenant-${upTo(3)}`,
      priority: 100 * (1 + upTo(3)),
      relativePriority: upTo(3),
      data: { project: `project-${upTo(4)}` },
    });
    while (store.requests.get(id)?.request.state !== 'fulfilled') await sleep(world.clock, 1000);
    const taken = await world.requestor.take(id);
    await sleep(world.clock, 1000 * (5 + upTo(40)));
    await world.requestor.giveBack(taken);
    left -= 1;
  };
  const all = Promise.all(Array.from({ length: left }, one));
  // Longer than `World.during` waits.
  while (left > 0 && world.clock.now() < end) await world.clock.runNext();
  expect(left).toBe(0);
  await all;
  expect(await world.end()).toEqual([]);
  return accepted;
}

it('without fair shares, requests are accepted in the recorded order', async () => {
  const orders: (readonly string[])[] = [];
  for (let seed = 1; seed <= SEEDS; seed += 1) orders.push(await orderOf(seed));
  // Records the orders anew after an intended change of the order of service.
  if (process.env['RECORD_ORDER'] !== undefined) writeFileSync(FILE, `${JSON.stringify(orders)}\n`);
  expect(orders).toEqual(JSON.parse(readFileSync(FILE, 'utf8')));
});
