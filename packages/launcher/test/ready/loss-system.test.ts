/** The counted demand against a launcher: pools of ready nodes serve what the counter says that they serve. */

import { expect, it } from '@jest/globals';
import { MIN_READY_REQUESTOR } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { DemandCounter } from '../../src/index.js';
import { LEVELS } from '../../src/supply/forecast/levels.js';
import { REQUESTS } from '../support/world.js';
import { demo, world } from '../support/cleanup-world.js';

const BOOT_MS = 120_000;
/** Longest wait (ms) of a request that a ready node serves. */
const AT_ONCE_MS = 5000;
const COUNT = 60;

it.each([
  [1, 1],
  [2, 2],
  [3, 4],
])('seed %i: a launcher that keeps %i ready serves as many requests at once as counted', async (seed, size) => {
  world.cloud.configure({ bootTimeMs: [BOOT_MS, BOOT_MS] });
  const label = { name: 'small', minReady: size, maxReadyAgeMs: Infinity, maxWaitMs: Infinity };
  await world.launcher([demo()], 'launcher1', { labels: new Map([['small', label]]) });
  await world.clock.advance(2 * BOOT_MS);
  const served = new Set<string>();
  world.server.onCommit(() => {
    for (const [id, { state, requestor, created_time: created }] of world.records(REQUESTS)) {
      const isAtOnce = world.clock.now() - Number(created) * 1000 < AT_ONCE_MS;
      if (state === 'fulfilled' && requestor !== MIN_READY_REQUESTOR && isAtOnce) served.add(id);
    }
  });
  const random = seededRandom(seed);
  const counter = new DemandCounter(0);
  for (let index = 0; index < COUNT; index += 1) {
    // Bursts of requests 10 s apart, and pauses.
    await world.clock.advance(10_000 + (random.next() < 0.3 ? random.next() * 600_000 : 0));
    counter.add(world.clock.now(), BOOT_MS);
    await world.submit(['small']);
  }
  await world.clock.advance(2 * BOOT_MS);
  const counted = counter.quarter.gains.slice(0, LEVELS.indexOf(size) + 1).reduce((sum, gain) => sum + gain, 0);
  expect(counted).toBeLessThan(COUNT);
  expect([served.size, counted]).toEqual([counted, counted]);
});
