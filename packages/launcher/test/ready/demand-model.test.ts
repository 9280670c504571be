/** Tests of the forecast of demand with generated demand, by seed. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { DemandCounter, DemandModel, HeldTarget, quarterOf } from '../../src/index.js';
import { LEVELS } from '../../src/supply/forecast/levels.js';
import { decodeDemand, encodeDemand } from '../../src/supply/forecast/demand-record.js';

const QUARTER_MS = 900_000;
const WEEK = 672;
const BOOT_MS = 120_000;
const SEEDS = [1, 2, 3, 4];

/** Nodes per hour: many from eight to six on working days, few otherwise. */
function rate(index: number): number {
  const [day, hour] = [Math.floor(index / 96) % 7, Math.floor((index % 96) / 4)];
  return day < 5 && hour >= 8 && hour < 18 ? 40 : 2;
}

/** Replays weeks of demand. Returns the share that the forecasts served at once in the last week, and their sizes. */
function replay(
  seed: number,
  weeks: number,
  servedAtOnce: number,
): { readonly served: number; readonly sizes: number[] } {
  const random = seededRandom(seed);
  const counter = new DemandCounter(0);
  const model = new DemandModel();
  const sizes: number[] = [];
  let [demand, served] = [0, 0];
  for (let index = 0; index < weeks * WEEK; index += 1) {
    const [size = 0] = model.sizes([index], servedAtOnce);
    const times = arrivals(random, rate(index)).map((offset) => index * QUARTER_MS + offset);
    for (const time of times) counter.add(time, BOOT_MS);
    const quarter = counter.begin(index + 1);
    model.add(quarter);
    if (index < (weeks - 1) * WEEK) continue;
    sizes.push(size);
    demand += quarter.demand;
    served += quarter.gains.slice(0, LEVELS.indexOf(size) + 1).reduce((sum, gain) => sum + gain, 0);
  }
  return { served: served / demand, sizes };
}

function arrivals(random: { next(): number }, perHour: number): number[] {
  const times: number[] = [];
  const wait = (): number => (-Math.log(1 - random.next()) * 3_600_000) / perHour;
  for (let time = wait(); time < QUARTER_MS; time += wait()) times.push(time);
  return times;
}

describe('the sizes of pools', () => {
  it('grow by at most a quarter', () => {
    for (const [level, size] of LEVELS.entries()) {
      const before = LEVELS[level - 1] ?? 0;
      expect(size - before === 1 || (size - before) / before <= 0.25).toBe(true);
    }
    expect(LEVELS.at(-1)).toBe(1024);
  });
});

describe('counted demand', () => {
  it('is what pools of each size serve at once, with nodes that are replaced after a boot time', () => {
    const counter = new DemandCounter(0);
    for (const time of [0, 10_000, 20_000, 120_000, 125_000]) counter.add(time, BOOT_MS);
    // One node serves the first and the fourth request; two also the second; three the third; four the last.
    expect(counter.quarter).toEqual({ index: 0, demand: 5, gains: [2, 1, 1, 1] });
  });

  it('continues in another process, after it was stored', () => {
    const [first, second] = [new DemandCounter(0), new DemandCounter(0)];
    for (const time of [0, 10_000]) first.add(time, BOOT_MS);
    const stored = decodeDemand(encodeDemand({ quarters: [first.quarter], bootMs: 90_000, lastRequest: 7 }));
    expect(stored).toEqual({ quarters: [first.quarter], bootMs: 90_000, lastRequest: 7 });
    for (const quarter of stored.quarters) second.resume(quarter);
    second.add(300_000, BOOT_MS);
    expect(second.quarter).toEqual({ index: 0, demand: 3, gains: [2, 1] });
    expect(decodeDemand({ quarters: [[1, 'x', []], 5], boot: -1, last_request: null })).toEqual({
      quarters: [],
      bootMs: undefined,
      lastRequest: undefined,
    });
  });

  it('has quarters of an hour', () => {
    expect([quarterOf(0), quarterOf(899_999), quarterOf(900_000)]).toEqual([0, 0, 1]);
  });
});

describe('the forecast', () => {
  it.each(SEEDS)('serves the stated share of a weekly demand at once, seed %i', (seed) => {
    for (const share of [0.8, 0.95]) {
      const { served } = replay(seed, 6, share);
      expect(Math.abs(served - share)).toBeLessThan(0.08);
    }
  });

  it.each(SEEDS)('has more ready nodes in busy hours than in quiet ones, seed %i', (seed) => {
    const { sizes } = replay(seed, 4, 0.95);
    const mean = (busy: boolean): number => {
      const chosen = sizes.filter((_, index) => rate(index) > 10 === busy);
      return chosen.reduce((sum, size) => sum + size, 0) / chosen.length;
    };
    expect(mean(true)).toBeGreaterThan(2 * mean(false));
  });

  it.each(SEEDS)('has fewer idle nodes than the constant pool that serves the same share, seed %i', (seed) => {
    const { served, sizes } = replay(seed, 6, 0.95);
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    const random = seededRandom(seed);
    const counter = new DemandCounter(0);
    for (let index = 0; index < WEEK; index += 1)
      for (const offset of arrivals(random, rate(index))) counter.add(index * QUARTER_MS + offset, BOOT_MS);
    const { demand, gains } = counter.quarter;
    let constant = 0;
    for (let sum = 0; sum < served * demand; constant += 1) sum += gains[constant] ?? 0;
    expect(mean).toBeLessThan(constant);
  });

  it('is 0 without demand, and forgets no demand in a pause', () => {
    const model = new DemandModel();
    expect(model.sizes([0, 1], 0.95)).toEqual([0, 0]);
    for (let index = 0; index < 96; index += 1) model.add({ index, demand: 4, gains: [2, 1, 1] });
    const busy = model.sizes([96], 0.95);
    model.add({ index: 96 + WEEK, demand: 0, gains: [] });
    const quiet = model.sizes([97 + WEEK], 0.95);
    expect(busy).toEqual([3]);
    expect(quiet[0]).toBeGreaterThan(0);
    expect(() => model.add({ index: 1e9, demand: 1, gains: [1] })).not.toThrow();
  });
});

describe('a held target', () => {
  it('is the largest of the window, and unlimited until the window has passed', () => {
    const held = new HeldTarget(100, 0);
    held.set(3, 0);
    expect(held.at(99)).toBe(Infinity);
    expect([held.at(100), held.nextFall(100)]).toEqual([3, Infinity]);
    held.set(7, 110);
    held.set(5, 120);
    held.set(2, 130);
    held.set(5, 140);
    expect([held.at(219), held.nextFall(219)]).toEqual([7, 220]);
    expect([held.at(220), held.nextFall(220)]).toEqual([5, Infinity]);
    held.set(1, 300);
    expect([held.at(399), held.at(400)]).toEqual([5, 1]);
  });

  it.each(SEEDS)('is the largest of all targets that applied in the window, seed %i', (seed) => {
    const random = seededRandom(seed);
    const held = new HeldTarget(50, 0);
    const steps: { readonly since: number; readonly count: number }[] = [];
    for (let now = 0; now < 1000; now += 1) {
      if (random.next() < 0.1 || now === 0) {
        steps.push({ since: now, count: Math.floor(random.next() * 10) });
        held.set(steps.at(-1)?.count ?? 0, now);
      }
      const applied = steps.filter((_, index) => (steps[index + 1]?.since ?? Infinity) > now - 50);
      if (now >= 50) expect(held.at(now)).toBe(Math.max(...applied.map(({ count }) => count)));
    }
  });
});
