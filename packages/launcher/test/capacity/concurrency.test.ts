/** Tests of the limit of requests that a provider works on at a time. */

import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { Concurrency } from '../../src/scheduling/concurrency.js';

const acquire = (concurrency: Concurrency, count: number): void => {
  for (let index = 0; index < count; index += 1) concurrency.acquire(() => undefined);
};

it('the launch limit halves on throttled launches, and grows by one per success up to max-concurrency', () => {
  const concurrency = new Concurrency(10, new VirtualClock());
  acquire(concurrency, 8);
  for (let index = 0; index < 5; index += 1) concurrency.throttled();
  expect(concurrency.limit).toBe(4);
  expect(concurrency.isAvailable(() => undefined, '200')).toBe(false);
  concurrency.succeeded();
  expect(concurrency.limit).toBe(5);
  for (let index = 0; index < 20; index += 1) concurrency.succeeded();
  expect(concurrency.limit).toBe(10);
});

it('the launch limit is at least one, and returns to max-concurrency after ten minutes', async () => {
  const clock = new VirtualClock();
  const concurrency = new Concurrency(Infinity, clock);
  for (let index = 0; index < 10; index += 1) {
    concurrency.throttled();
    await clock.advance(10_000);
  }
  expect(concurrency.limit).toBe(1);
  await clock.advance(600_000);
  expect(concurrency.limit).toBe(Infinity);
});
