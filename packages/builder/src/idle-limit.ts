/** A time limit that every progress extends. */

import type { Clock, Timer } from '@nodepool/core';

export class IdleLimit {
  private readonly controller = new AbortController();
  private progressedAt: number;
  private timer: Timer;

  constructor(
    private readonly clock: Clock,
    private readonly limitMs: number,
  ) {
    this.progressedAt = clock.monotonic();
    this.timer = this.schedule(limitMs);
  }

  /** Aborts when the limit is reached. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  progressed(): void {
    this.progressedAt = this.clock.monotonic();
  }

  stop(): void {
    this.timer.cancel();
  }

  private schedule(delayMs: number): Timer {
    return this.clock.schedule(delayMs, () => {
      const leftMs = this.progressedAt + this.limitMs - this.clock.monotonic();
      if (leftMs > 0) this.timer = this.schedule(Math.ceil(leftMs));
      else this.controller.abort(new Error(`no progress for ${this.limitMs / 1000} s`));
    });
  }
}
