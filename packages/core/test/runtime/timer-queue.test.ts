/** Many timers on one timer of the clock. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '../../src/testing/index.js';
import type { Timer } from '../../src/runtime/clock.js';
import { TimerQueue } from '../../src/runtime/timer-queue.js';

describe('a timer queue', () => {
  it('runs timers in the order of their times, then of their creation, with one timer of the clock', async () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const ran: string[] = [];
    for (const [name, at] of [['c', 30], ['a', 10], ['b1', 20], ['b2', 20]] as const) queue.schedule(at, () => ran.push(name)); // prettier-ignore
    expect(clock.pending).toBeLessThanOrEqual(1);
    await clock.advance(15);
    expect(ran).toEqual(['a']);
    await clock.advance(100);
    expect(ran).toEqual(['a', 'b1', 'b2', 'c']);
    expect(clock.pending).toBe(0);
  });

  it('runs every timer that was not cancelled at its time (seed 7)', async () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const random = seededRandom(7);
    const expected = new Map<number, number>();
    const ran = new Map<number, number>();
    const timers = Array.from({ length: 2000 }, (_, id) => {
      const at = Math.floor(random.next() * 10_000);
      expected.set(id, at);
      return queue.schedule(at, () => {
        ran.set(id, clock.monotonic());
        const victim = Math.floor(random.next() * 2000);
        if (ran.has(victim)) return;
        timers[victim]?.cancel();
        expected.delete(victim);
      });
    });
    await clock.advance(20_000);
    expect([...ran.keys()].sort()).toEqual([...expected.keys()].sort());
    expect(ran).toEqual(new Map([...ran.keys()].map((id) => [id, expected.get(id)])));
    expect(queue.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('keeps the order while timers are added and cancelled (seed 3)', async () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const random = seededRandom(3);
    const pending = new Map<number, { readonly at: number; readonly timer: Timer }>();
    const ran: number[] = [];
    for (let id = 0; id < 3000; id += 1) {
      const at = Math.floor(random.next() * 200);
      pending.set(id, { at, timer: queue.schedule(at, () => ran.push(id)) });
      const victim = Math.floor(random.next() * 2 * id);
      pending.get(victim)?.timer.cancel();
      pending.delete(victim);
    }
    expect(queue.size).toBe(pending.size);
    const expected = [...pending].sort(([, one], [, other]) => one.at - other.at).map(([id]) => id);
    await clock.advance(200);
    expect(ran).toEqual(expected);
    expect(queue.size).toBe(0);
  });

  it('holds no timer of the clock when all were cancelled, or for an infinite time', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const timers = [5, 1, 3].map((at) => queue.schedule(at, () => undefined));
    for (const timer of timers) timer.cancel();
    queue.schedule(Infinity, () => undefined);
    expect(clock.pending).toBe(0);
  });

  it.each([
    [[], [20]],
    [[], [5]],
    [[30], [20, 5]],
  ])('with timers at %j, and a cancelled one at 10, runs new ones at %j', async (others, added) => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const ran: number[] = [];
    const add = (at: number): Timer => queue.schedule(at, () => ran.push(at));
    others.forEach(add);
    add(10).cancel();
    added.forEach(add);
    await clock.advance(100);
    expect(ran).toEqual([...others, ...added].sort((one, other) => one - other));
  });

  it.each([
    ['the first', ['a'], ['b', 'c', 'd']],
    ['all', ['a', 'b', 'c', 'd'], []],
    ['the last', ['d'], ['a', 'b', 'c']],
  ])(
    'runs the other timers of a turn in which %s throws, and later ones, and throws',
    async (_which, faulty, others) => {
      const clock = new VirtualClock();
      const queue = new TimerQueue(clock);
      const ran: string[] = [];
      for (const name of ['a', 'b', 'c', 'd']) {
        queue.schedule(10, () => {
          if (faulty.includes(name)) throw new Error(`of ${name}`);
          ran.push(name);
        });
      }
      queue.schedule(20, () => ran.push('later'));
      const thrown: string[] = [];
      while (clock.pending > 0) {
        await clock.advance(20).catch((error: unknown) => thrown.push(String(error)));
      }
      expect(thrown).toEqual(faulty.map((name) => `Error: of ${name}`));
      expect(ran).toEqual([...others, 'later']);
      expect(queue.size).toBe(0);
    },
  );

  it('runs a timer set for the past or from a timer in a later turn', async () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const ran: string[] = [];
    queue.schedule(-5, () => {
      queue.schedule(0, () => ran.push('inner'));
      ran.push('outer');
    });
    expect(ran).toEqual([]);
    await clock.advance(0);
    expect(ran).toEqual(['outer', 'inner']);
  });
});
