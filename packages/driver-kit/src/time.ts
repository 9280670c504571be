/** The time of a test: how it passes, and how one waits in it for something to happen. */

import { sleep, systemClock, type Clock } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
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
  /**
   * Real milliseconds for which time stands still while bytes that were sent are not received. Default 30,000: bytes between
   * two sockets of this process arrive, and only a limit for tests that hang is needed.
   */
  readonly patienceMs?: number;
}

const DEFAULT_PATIENCE_MS = 30_000;

/**
 * Time of a virtual clock, which passes when nothing else happens. It stands still while the process has file operations,
 * name lookups or compression under way, or has sent itself something that it has not received. For simulated clouds in
 * this process and on the same clock, called directly or over HTTP.
 */
export function simulatedTime(options: SimulatedTimeOptions = {}): TestTime & { readonly clock: VirtualClock } {
  const clock = options.clock ?? new VirtualClock();
  const io = new InputOutput(options.patienceMs ?? DEFAULT_PATIENCE_MS);
  const until = async (condition: () => boolean, limitMs: number): Promise<boolean> => {
    const end = clock.monotonic() + limitMs;
    for (;;) {
      const idle = await io.idleTurns();
      if (condition()) return true;
      if (!idle) continue;
      if ((clock.nextDueAt ?? Infinity) > end) {
        await clock.advance(end - clock.monotonic());
        return condition();
      }
      await clock.runNext();
    }
  };
  return { clock, until };
}
