/**
 * Spaces calls evenly, at the configured rate at most. Throttled calls halve the rate; successful ones increase it
 * again step by step (additive increase, multiplicative decrease).
 */

import { abortReason, type Clock, type Timer } from '../runtime/clock.js';
import { AbortedError, isDriverError } from './errors.js';

/** Timer lateness up to this is not charged against the rate, in milliseconds. */
const TIMER_SLACK_MS = 5;

/** Tolerance for rounding errors in sums of times, in milliseconds. */
const ROUNDING_MS = 0.001;

/** Shortest time between two decreases, in milliseconds, because concurrent calls are throttled together. */
const DECREASE_INTERVAL_MS = 1000;

/** Minimum rate, as a fraction of the configured rate; if no rate is configured, in calls per second. */
const MIN_FRACTION = 1 / 8;
const MIN_RATE = 1;

/** Time in which uninterrupted success increases the rate from zero to the configured rate, in seconds. */
const RECOVERY_SECONDS = 30;

/** Time without throttling after which a rate that was not configured is unlimited again, in milliseconds. */
const FORGET_MS = 60_000;

interface Waiter {
  resolve(): void;
}

export class RateLimiter {
  /** Current rate in calls per second. */
  private rate: number;
  private decreasedAt = -Infinity;
  /** Start and number of calls of the current second, to estimate the rate if none is configured. */
  private recent = { since: -Infinity, calls: 0, before: 0 };
  private nextAt = -Infinity;
  private readonly waiters = new Set<Waiter>();
  private timer: Timer | undefined;

  /** `callsPerSecond` is positive and may be fractional; `Infinity` disables the limit. */
  constructor(
    private readonly clock: Clock,
    private readonly callsPerSecond: number,
  ) {
    if (!(callsPerSecond > 0)) {
      throw new RangeError(`calls per second must be more than 0, not ${callsPerSecond}`);
    }
    this.rate = callsPerSecond;
  }

  /** Number of callers that wait in `acquire`. */
  get queueLength(): number {
    return this.waiters.size;
  }

  /** Calls per second that are currently allowed. */
  get currentRate(): number {
    return this.rate;
  }

  /**
   * Adapts the rate to the result of a call. `error` is the reason of its rejection, undefined if it succeeded. A
   * throttled call pauses all calls for at least `retryAfterMs`.
   */
  settled(error?: unknown): void {
    if (error === undefined) this.increase();
    else if (isDriverError(error) && error.code === 'throttled') this.decrease(error.retryAfterMs ?? 0);
  }

  /** Returns the milliseconds until the next call may start; 0 if it may start now. */
  delayMs(): number {
    const delay = this.nextAt - this.clock.monotonic();
    return delay > ROUNDING_MS ? delay : 0;
  }

  /** Records that a call starts now. */
  take(): void {
    const now = this.clock.monotonic();
    this.count(now);
    if (this.rate === Infinity) return;
    this.nextAt = (now - this.nextAt < TIMER_SLACK_MS ? this.nextAt : now) + 1000 / this.rate;
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

  private decrease(retryAfterMs: number): void {
    const now = this.clock.monotonic();
    this.nextAt = Math.max(this.nextAt, now + retryAfterMs);
    if (now - this.decreasedAt < DECREASE_INTERVAL_MS) return;
    this.decreasedAt = now;
    const least = this.callsPerSecond === Infinity ? MIN_RATE : this.callsPerSecond * MIN_FRACTION;
    const before = this.rate === Infinity ? Math.max(this.recent.calls, this.recent.before) : this.rate;
    this.rate = Math.max(before / 2, least);
  }

  private increase(): void {
    const { callsPerSecond } = this;
    if (this.rate >= callsPerSecond) return;
    if (callsPerSecond === Infinity && this.clock.monotonic() - this.decreasedAt >= FORGET_MS) {
      this.rate = Infinity;
      return;
    }
    // The increase per second is constant: it is divided among the calls of one second.
    const perSecond = callsPerSecond === Infinity ? MIN_RATE : callsPerSecond / RECOVERY_SECONDS;
    this.rate = Math.min(this.rate + perSecond / this.rate, callsPerSecond);
  }

  private count(now: number): void {
    if (now - this.recent.since < 1000) {
      this.recent.calls += 1;
      return;
    }
    const before = now - this.recent.since < 2000 ? this.recent.calls : 0;
    this.recent = { since: now, calls: 1, before };
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
