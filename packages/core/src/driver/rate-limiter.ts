/** Spaces calls evenly, at the rate that a cloud or its configuration allows. */

import { abortReason, type Clock, type Timer } from '../runtime/clock.js';
import { AbortedError } from './errors.js';

/** Timer lateness up to this is not charged against the rate, in milliseconds. */
const TIMER_SLACK_MS = 5;

/** Tolerance for rounding errors in sums of times, in milliseconds. */
const ROUNDING_MS = 0.001;

interface Waiter {
  resolve(): void;
}

export class RateLimiter {
  private readonly intervalMs: number;
  private nextAt = -Infinity;
  private readonly waiters = new Set<Waiter>();
  private timer: Timer | undefined;

  /** `callsPerSecond` is positive and may be fractional; `Infinity` disables the limit. */
  constructor(
    private readonly clock: Clock,
    callsPerSecond: number,
  ) {
    if (!(callsPerSecond > 0)) {
      throw new RangeError(`calls per second must be more than 0, not ${callsPerSecond}`);
    }
    this.intervalMs = 1000 / callsPerSecond;
  }

  /** Number of callers that wait in `acquire`. */
  get queueLength(): number {
    return this.waiters.size;
  }

  /** Returns the milliseconds until the next call may start; 0 if it may start now. */
  delayMs(): number {
    if (this.intervalMs === 0) return 0;
    const delay = this.nextAt - this.clock.monotonic();
    return delay > ROUNDING_MS ? delay : 0;
  }

  /** Records that a call starts now. */
  take(): void {
    if (this.intervalMs === 0) return;
    const now = this.clock.monotonic();
    this.nextAt = (now - this.nextAt < TIMER_SLACK_MS ? this.nextAt : now) + this.intervalMs;
  }

  /**
   * Resolves when the next call may start, in the order of the callers. Rejects with `AbortedError` if the signal
   * aborts, and the turn passes to the next caller.
   */
  async acquire(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) throw aborted(signal);
    if (this.waiters.size === 0 && this.delayMs() === 0) {
      this.take();
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.waiters.delete(waiter);
        if (this.waiters.size === 0) this.disarm();
        reject(signal === undefined ? new AbortedError('aborted') : aborted(signal));
      };
      const waiter: Waiter = {
        resolve: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.waiters.add(waiter);
      this.arm();
    });
  }

  private arm(): void {
    this.timer ??= this.clock.schedule(this.delayMs(), () => {
      this.timer = undefined;
      this.serve();
    });
  }

  private disarm(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private serve(): void {
    for (const waiter of this.waiters) {
      if (this.delayMs() > 0) break;
      this.take();
      this.waiters.delete(waiter);
      waiter.resolve();
    }
    if (this.waiters.size > 0) this.arm();
  }
}

function aborted(signal: AbortSignal): AbortedError {
  return new AbortedError('aborted while waiting for the rate limit', {
    outcome: 'not-applied',
    cause: abortReason(signal),
  });
}
