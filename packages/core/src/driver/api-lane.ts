/** Lanes of an API client: limits of the calls in progress, and their turns at a rate. */

import type { Clock, Timer } from '../runtime/clock.js';
import { Slots } from '../runtime/slots.js';
import type { TimerQueue } from '../runtime/timer-queue.js';
import type { RateLimiter } from './rate-limiter.js';

/** Time for which an abandoned call that has not ended keeps its place in its lane (ms). */
const ABANDON_AFTER_MS = 10_000;

export interface LaneOptions {
  /** Maximum number of calls in progress. Default: not limited. */
  readonly atOnce?: number;
  /** Rate of this lane alone. Default: the lanes of a client share its rate. */
  readonly callsPerSecond?: number;
}

/**
 * Calls that start in order. At most one call of a lane waits for the rate, so that lanes with a common rate take
 * turns: reads do not queue behind all writes, and vice versa.
 */
export class Lane {
  private readonly slots: Slots;
  private readonly turn = new Slots(1);
  private waiting = 0;

  constructor(
    readonly limiter: RateLimiter,
    atOnce = Infinity,
  ) {
    this.slots = new Slots(atOnce);
  }

  /** Number of calls that wait for their turn. */
  get queueLength(): number {
    return this.waiting;
  }

  /** Returns a function that ends the turn; undefined if the call has to wait. */
  tryEnter(): (() => void) | undefined {
    const { limiter } = this;
    if (this.waiting > 0 || limiter.queueLength > 0 || limiter.delayMs() > 0) return undefined;
    const leave = this.slots.tryAcquire();
    if (leave !== undefined) limiter.take();
    return leave;
  }

  /**
   * Resolves with a function that ends the turn, or with undefined if the call must not start now. `mayStart` is asked
   * when there is a place. Rejects if the signal aborts.
   */
  async enter(signal: AbortSignal, mayStart: () => boolean): Promise<(() => void) | undefined> {
    this.waiting += 1;
    try {
      const leave = await this.slots.acquire(signal);
      try {
        if (mayStart()) {
          await this.turn.run(signal, () => this.limiter.acquire(signal));
          return leave;
        }
      } catch (error) {
        leave();
        throw error;
      }
      leave();
      return undefined;
    } finally {
      this.waiting -= 1;
    }
  }
}

/** The turn of a call. It ends with the call, or a while after the call was abandoned. */
export class Turn {
  private isUsed = false;
  private timer: Timer | undefined;

  constructor(
    private readonly leave: () => void,
    private readonly timers: TimerQueue,
    private readonly clock: Clock,
    private readonly onStuck: () => void,
  ) {}

  async use<T>(send: () => Promise<T>): Promise<T> {
    this.isUsed = true;
    try {
      return await send();
    } finally {
      this.isUsed = false;
      this.timer?.cancel();
      this.leave();
    }
  }

  /** Ends the turn, or waits for the end of the call, since its client may not support concurrent calls. */
  end(): void {
    if (!this.isUsed) {
      this.leave();
      return;
    }
    this.timer = this.timers.schedule(this.clock.monotonic() + ABANDON_AFTER_MS, () => {
      this.onStuck();
      this.leave();
    });
  }
}
