/** The time of a test: how it passes, and how one waits in it for something to happen. */

import { sleep, systemClock, VirtualClock, type Clock } from '@nodepool/core';
import { InputOutput } from './input-output.js';

export interface TestTime {
  /** What driver and cloud get. */
  readonly clock: Clock;
  /** Lets time pass until the condition holds. False: it does not after `limitMs` of the clock. */
  until(condition: () => boolean, limitMs: number): Promise<boolean>;
}

/** How often the condition is looked at in real time, milliseconds. */
const LOOK_EVERY_MS = 10;

/** The time of the wall, for clouds that are real or processes of their own. */
export function realTime(): TestTime {
  return {
    clock: systemClock,
    async until(condition, limitMs) {
      const end = systemClock.monotonic() + limitMs;
      while (!condition()) {
        if (systemClock.monotonic() >= end) return false;
        await sleep(systemClock, LOOK_EVERY_MS);
      }
      return true;
    },
  };
}

export interface SimulatedTimeOptions {
  /** Default: a new one. */
  readonly clock?: VirtualClock;
  /** Real milliseconds for which time stands still while a call that is under way makes no progress. Default 300. */
  readonly patienceMs?: number;
}

/**
 * A jump over more time than that, or to the end when no timer is left, is made only after so many real milliseconds in
 * which nothing happened: not everything that a process waits for is seen as input or output.
 */
const LONG_JUMP_MS = 5000;
const QUIET_MS = 30;

/**
 * Time of a virtual clock, which passes when nothing else happens: while HTTP calls or file operations of this process are
 * under way it stands still, for as long as something comes of them. For simulated clouds in this process and on the same
 * clock, called directly or over HTTP.
 */
export function simulatedTime(options: SimulatedTimeOptions = {}): TestTime & { readonly clock: VirtualClock } {
  const clock = options.clock ?? new VirtualClock();
  const io = new InputOutput(options.patienceMs ?? 300);
  const look = async (condition: () => boolean): Promise<'holds' | 'busy' | 'quiet'> => {
    await io.turns();
    if (condition()) return 'holds';
    return io.busy ? 'busy' : 'quiet';
  };
  const until = async (condition: () => boolean, limitMs: number): Promise<boolean> => {
    const end = clock.monotonic() + limitMs;
    for (;;) {
      let state = await look(condition);
      const next = clock.nextDueAt ?? Infinity;
      if (state === 'quiet' && next - clock.monotonic() > LONG_JUMP_MS) {
        await sleep(systemClock, QUIET_MS);
        state = await look(condition);
      }
      if (state === 'holds') return true;
      // What happened meanwhile may have made a timer, or taken one away.
      if (state === 'busy' || (clock.nextDueAt ?? Infinity) !== next) continue;
      if (next > end) {
        await clock.advance(end - clock.monotonic());
        return condition();
      }
      await clock.runNext();
    }
  };
  return { clock, until: (condition, limitMs) => io.watched(() => until(condition, limitMs)) };
}
