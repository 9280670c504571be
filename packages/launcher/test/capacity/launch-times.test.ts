/** Tests of the limit from which on a launch counts as slow. */

import { beforeEach, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { LaunchTimes, type TimedLaunch } from '../../src/capacity/launch-times.js';

let clock: VirtualClock;
let times: LaunchTimes;
let healthy: Set<string>;

beforeEach(() => {
  clock = new VirtualClock();
  times = new LaunchTimes(clock);
  healthy = new Set(['a', 'b', 'c']);
});

const begin = (pool: string): TimedLaunch =>
  times.begin({ pool, label: 'small', zone: undefined, machineType: undefined }, () => healthy.has(pool));

async function launched(pool: string, seconds: number, count = 5): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const launch = begin(pool);
    await clock.advance(seconds * 1000);
    launch.end(true);
  }
}

it('is unknown before anything is known', () => {
  expect(begin('a').limitMs()).toBeUndefined();
});

it('follows from the fastest healthy offer, but is two minutes at least', async () => {
  await launched('a', 100);
  await launched('b', 200);
  expect(begin('c').limitMs()).toBe(200_000);
  healthy.delete('a');
  expect(begin('c').limitMs()).toBe(400_000);
  await launched('b', 10, 20);
  expect(begin('c').limitMs()).toBe(120_000);
});

it('allows an offer twice the time that it is known for', async () => {
  await launched('a', 60);
  await launched('b', 300);
  expect(begin('b').limitMs()).toBe(600_000);
});

it('grows with launches of the others that are running for longer than usual', async () => {
  await launched('a', 60);
  const running = Array.from({ length: 5 }, () => begin('a'));
  const own = begin('b');
  await clock.advance(500_000);
  expect(own.limitMs()).toBe(1_000_000);
  for (const launch of running) launch.end(false);
  expect(own.limitMs()).toBe(120_000);
});

it('does not depend on pools that are stopped', async () => {
  await launched('a', 100);
  times.forget('a');
  expect(begin('b').limitMs()).toBeUndefined();
});
