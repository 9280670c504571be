/** A clock that counts its user's pending timers. */

import type { Clock, Timer } from '@nodepool/core';

export class CountingClock implements Clock {
  private readonly live = new Set<Timer>();

  constructor(private readonly clock: Clock) {}

  /** Number of timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.live.size;
  }

  now(): number {
    return this.clock.now();
  }

  monotonic(): number {
    return this.clock.monotonic();
  }

  schedule(delayMs: number, callback: () => void, options?: { background?: boolean }): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('a timer was requested with a delay that is not a number');
    const inner = this.clock.schedule(
      delayMs,
      () => {
        this.live.delete(timer);
        callback();
      },
      options,
    );
    const timer: Timer = {
      cancel: () => {
        this.live.delete(timer);
        inner.cancel();
      },
    };
    this.live.add(timer);
    return timer;
  }
}
