/** Cached values of a cloud: sharing, expiration and failures. */

import { expect, it } from '@jest/globals';
import { CachedRead, type Call } from '@nodepool/core';
import { silentLogger, VirtualClock } from '@nodepool/core/testing';

const MAX_AGE_MS = 1000;

/** Returns a cache whose loads resolve one after the other with 1, 2, … after a second. */
function cacheOf(clock: VirtualClock, failing: readonly number[] = []): CachedRead<number> {
  let loads = 0;
  const load = async (): Promise<number> => {
    const load = (loads += 1);
    await new Promise<void>((resolve) => void clock.schedule(1000, resolve));
    if (failing.includes(load)) throw new Error(`load ${load} failed`);
    return load;
  };
  const makeCall = (): Call => ({ signal: new AbortController().signal, deadline: Infinity, log: silentLogger });
  return new CachedRead(load, makeCall, clock, MAX_AGE_MS);
}

it('concurrent readers share one load, whose value is cached until it is too old', async () => {
  const clock = new VirtualClock();
  const cache = cacheOf(clock);
  const reads = Promise.all([cache.read(), cache.read()]);
  expect(cache.latest).toBeUndefined();
  await clock.advance(1000);
  expect(await reads).toEqual([1, 1]);
  const later = cache.read();
  expect(cache.latest).toBe(1);
  await clock.advance(1000);
  expect(await later).toBe(2);
  expect(await cache.read(Infinity)).toBe(2);
});

it('a failure reaches all readers and is not cached', async () => {
  const clock = new VirtualClock();
  const cache = cacheOf(clock, [1]);
  const failed = Promise.allSettled([cache.read(), cache.read()]);
  await clock.advance(1000);
  expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = cache.read();
  await clock.advance(1000);
  expect(await next).toBe(2);
});

it('a forgotten value is loaded again, and a load that began before is not cached', async () => {
  const clock = new VirtualClock();
  const cache = cacheOf(clock);
  const first = cache.read();
  await clock.advance(500);
  cache.forget();
  const second = cache.read();
  await clock.advance(500);
  expect(cache.latest).toBeUndefined();
  const third = cache.read(Infinity);
  await clock.advance(500);
  expect(await Promise.all([first, second, third])).toEqual([1, 2, 2]);
  expect(cache.latest).toBe(2);
});

it('a forgotten value is not returned again if the next load fails', async () => {
  const clock = new VirtualClock();
  const cache = cacheOf(clock, [2]);
  const advanced = async (read: Promise<number>): Promise<number> => {
    await Promise.allSettled([read, clock.advance(1000)]);
    return read;
  };
  expect(await advanced(cache.read())).toBe(1);
  cache.forget();
  await expect(advanced(cache.read(Infinity))).rejects.toThrow('load 2 failed');
  expect(await advanced(cache.read(Infinity))).toBe(3);
});
