/** What failed is tried again later, and later still when it fails again: per key, for ever, with jitter. */

import type { Clock, RandomSource } from '@nodepool/core';

export interface BackOffOptions {
  /** After the first failure, milliseconds. Doubles with each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
}

interface Failures {
  readonly count: number;
  /** Unix milliseconds of the last one. */
  readonly at: number;
  /** `Clock.monotonic` milliseconds. */
  readonly until: number;
}

export class BackOff {
  private readonly failures = new Map<string, Failures>();

  constructor(
    private readonly clock: Clock,
    private readonly random: RandomSource,
    private readonly options: BackOffOptions,
  ) {}

  /** Milliseconds until it may be tried again, at least `leastMs`. */
  failed(key: string, leastMs = 0): number {
    const { firstMs, longestMs } = this.options;
    const count = (this.failures.get(key)?.count ?? 0) + 1;
    const doubled = Math.min(firstMs * 2 ** (count - 1), longestMs);
    const waitMs = Math.max(leastMs, Math.round(doubled * (0.75 + this.random.next() / 4)));
    this.failures.set(key, { count, at: this.clock.now(), until: this.clock.monotonic() + waitMs });
    return waitMs;
  }

  /** It may be tried again after so long; that is no failure. */
  postpone(key: string, waitMs: number): void {
    const { count = 0, at = this.clock.now() } = this.failures.get(key) ?? {};
    this.failures.set(key, { count, at, until: this.clock.monotonic() + waitMs });
  }

  succeeded(key: string): void {
    this.failures.delete(key);
  }

  /** Milliseconds that are left to wait; 0: it may be tried. */
  remainingMs(key: string): number {
    const failures = this.failures.get(key);
    return failures === undefined ? 0 : Math.max(0, failures.until - this.clock.monotonic());
  }

  /** Unix milliseconds of the last failure; undefined: it has not failed since it last succeeded. */
  lastFailureAt(key: string): number | undefined {
    return this.failures.get(key)?.at;
  }
}
