import { sleep, systemClock, type Clock } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { InputOutput } from './input-output.js';

export interface TestTime {
  /** Clock of the driver and the cloud. */
  readonly clock: Clock;
  /** Advances the clock until the condition holds. Resolves with false if it does not within `limitMs` of the clock. */
  until(condition: () => boolean, limitMs: number): Promise<boolean>;
}

/** Interval between checks of the condition (ms of real time). */
const CHECK_INTERVAL_MS = 10;

/** Returns wall-clock time, for real clouds and clouds in another process. */
export function realTime(): TestTime {
  return {
    clock: systemClock,
    async until(condition, limitMs) {
      const end = systemClock.monotonic() + limitMs;
      while (!condition()) {
        if (systemClock.monotonic() >= end) return false;
        await sleep(systemClock, CHECK_INTERVAL_MS);
      }
      return true;
    },
  };
}

export interface SimulatedTimeOptions {
  /** Default: a new one. */
  readonly clock?: VirtualClock;
  /**
   * Time for which the clock stops while sent bytes have not been received (ms of real time). Default 30,000. Bytes
   * between two sockets of this process always arrive, so this only limits tests that hang.
   */
  readonly transitTimeoutMs?: number;
}

const DEFAULT_TRANSIT_TIMEOUT_MS = 30_000;

/**
 * Returns a virtual clock that advances when the process is idle. The clock stops during file operations, name lookups,
 * compression, and while data sent to itself is in transit. It suits simulated clouds in this process that use the same
 * clock, called directly or over HTTP.
 */
export function simulatedTime(options: SimulatedTimeOptions = {}): TestTime & { readonly clock: VirtualClock } {
  const clock = options.clock ?? new VirtualClock();
  const io = new InputOutput(options.transitTimeoutMs ?? DEFAULT_TRANSIT_TIMEOUT_MS);
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
