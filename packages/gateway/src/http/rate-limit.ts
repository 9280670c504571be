/** Limits of requests per caller: token buckets. */

import type { Clock } from '@nodepool/core';

interface Bucket {
  tokens: number;
  /** Monotonic milliseconds of the last refill. */
  at: number;
}

/** Number of callers whose buckets are kept; the oldest is dropped first, which only helps it. */
const MAX_BUCKETS = 10_000;

export class RateLimit {
  private readonly buckets = new Map<string, Bucket>();

  constructor(
    private readonly clock: Clock,
    private readonly limits: () => { readonly perSecond: number; readonly burst: number },
  ) {}

  /** Takes one request of the caller. Returns the seconds to wait if there is none left, else 0. */
  take(caller: string): number {
    const { perSecond, burst } = this.limits();
    const now = this.clock.monotonic();
    const bucket = this.buckets.get(caller) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    // The newest last, so that the first one is the oldest.
    this.buckets.delete(caller);
    this.buckets.set(caller, bucket);
    if (this.buckets.size > MAX_BUCKETS) {
      const [oldest] = this.buckets.keys();
      if (oldest !== undefined) this.buckets.delete(oldest);
    }
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
    bucket.tokens -= 1;
    return 0;
  }
}
