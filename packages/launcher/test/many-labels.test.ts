/**
 * Tests the start of a launcher with many labels: it asks clouds about all of them, but not in one turn of the event
 * loop.
 */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { QuotaInformation } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { World, pool, provider } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  await world.end();
});

it('a launcher queries a bounded number of labels per turn, over all providers', async () => {
  const labels = Array.from({ length: 30 }, (_, index) => `label-${index}`);
  const pools = ['p1', 'p2', 'p3', 'p4'].map((name) => pool(name, labels));
  const providers = ['a', 'b', 'c'].map((name) => provider(name, pools));
  const asked = new Set<string>();
  let inTurn = 0;
  let mostInTurn = 0;
  const drivers = faultyDriver(world.cloud, ({ config }) => ({
    getQuotaForLabel: (of, label) => {
      asked.add(`${config.name}/${of}/${label}`);
      if (inTurn === 0) setImmediate(() => (inTurn = 0));
      inTurn += 1;
      mostInTurn = Math.max(mostInTurn, inTurn);
      return Promise.resolve(QuotaInformation.use({ instances: 1 }));
    },
  }));
  const { launcher } = await world.launcher(providers, 'launcher1', drivers);
  await world.until('all providers serve', () => launcher.ready);
  expect(asked.size).toBe(3 * 4 * 30);
  // The virtual clock can run two timers in one turn.
  expect(mostInTurn).toBeLessThanOrEqual(2 * 50);
});
