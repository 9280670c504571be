/** The virtual clock. */
import { describe, expect, it } from '@jest/globals';
import { sleep } from '../../src/index.js';
import { VirtualClock } from '../../src/testing/index.js';

describe('VirtualClock', () => {
  it('runs timers in the order of their times, equal ones in the order of scheduling', async () => {
    const clock = new VirtualClock();
    const ran: string[] = [];
    for (const [delay, name] of [
      [20, 'c'],
      [10, 'a'],
      [20, 'd'],
      [10, 'b'],
      [0, 'now'],
    ] as const) {
      clock.schedule(delay, () => ran.push(`${name}@${clock.monotonic()}`));
    }
    await clock.advance(15);
    expect(ran).toEqual(['now@0', 'a@10', 'b@10']);
    await clock.advance(5);
    expect(ran.slice(3)).toEqual(['c@20', 'd@20']);
    expect(clock.pending).toBe(0);
  });

  it('keeps the order with many timers, some of them cancelled', async () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    const timers = Array.from({ length: 2000 }, (_, index) => {
      const delay = (index * 7919) % 1009;
      return { delay, timer: clock.schedule(delay, () => ran.push(delay)) };
    });
    const kept = timers.filter((_, index) => index % 4 === 0).map(({ delay }) => delay);
    timers.forEach(({ timer }, index) => {
      if (index % 4 !== 0) timer.cancel();
    });
    expect(clock.pending).toBe(500);
    await clock.advance(1009);
    expect(ran).toEqual(kept.sort((a, b) => a - b));
  });

  it('runs promise callbacks before the next timer', async () => {
    const clock = new VirtualClock();
    const log: string[] = [];
    const chain = async (): Promise<void> => {
      await sleep(clock, 10);
      for (let step = 0; step < 100; step++) await Promise.resolve();
      log.push('chain');
    };
    const done = chain();
    clock.schedule(10, () => log.push('second'));
    clock.schedule(11, () => log.push('third'));
    await clock.advance(20);
    await done;
    expect(log).toEqual(['chain', 'second', 'third']);
  });

  it('runs a timer that another one sets within the elapsed time', async () => {
    const clock = new VirtualClock({ startMs: 1000 });
    const at: number[] = [];
    const again = (): void => {
      at.push(clock.now());
      if (at.length < 5) clock.schedule(3, again);
    };
    clock.schedule(3, again);
    await clock.advance(12);
    expect(at).toEqual([1003, 1006, 1009, 1012]);
    expect(clock.nextDueAt).toBe(15);
  });

  it('runs until a condition is met, a limit is reached, or no timer is left', async () => {
    const clock = new VirtualClock();
    let flag = false;
    clock.schedule(50, () => {
      flag = true;
    });
    expect(await clock.runUntil(() => flag, 10)).toBe(false);
    expect(clock.monotonic()).toBe(10);
    expect(await clock.runUntil(() => flag)).toBe(true);
    expect(clock.monotonic()).toBe(50);
    expect(await clock.runUntil(() => false)).toBe(false);
    expect(await clock.runNext()).toBe(false);
  });

  it('changes the wall clock independently of durations', async () => {
    const clock = new VirtualClock({ startMs: 5000 });
    let ran = false;
    clock.schedule(10, () => {
      ran = true;
    });
    clock.jumpWallClock(-4000);
    expect([clock.now(), clock.monotonic(), ran]).toEqual([1000, 0, false]);
    await clock.advance(10);
    expect([clock.now(), clock.monotonic(), ran]).toEqual([1010, 10, true]);
  });

  it('rejects concurrent callers', async () => {
    const clock = new VirtualClock();
    const first = clock.advance(10);
    await expect(clock.advance(10)).rejects.toThrow('already running');
    await first;
  });
});
