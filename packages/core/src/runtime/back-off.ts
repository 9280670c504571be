import type { RandomSource } from './random.js';

/** Limits of a back-off, milliseconds. */
export interface BackOffLimits {
  /** Maximum wait after the first failure. Doubles with each further consecutive failure. */
  readonly firstMs: number;
  readonly longestMs: number;
}

const DEFAULT_LIMITS: BackOffLimits = { firstMs: 1000, longestMs: 60_000 };

/**
 * Returns the milliseconds to wait after `failures` consecutive failures (1 or more). The limit doubles with each
 * failure, and the wait is random between half the limit and the limit. `retryAfterMs` of the latest `error` can
 * lengthen the wait but not shorten it.
 */
export function backOffMs(
  failures: number,
  error: unknown,
  random: RandomSource,
  { firstMs, longestMs }: BackOffLimits = DEFAULT_LIMITS,
): number {
  const doubledMs = Math.min(firstMs * 2 ** (failures - 1), longestMs);
  return Math.max(doubledMs * (0.5 + random.next() / 2), retryAfterMsOf(error));
}

/** Returns the wait (ms) that the error asks for, e.g. a `DriverError` of a throttling cloud; 0 if it asks for none. */
export function retryAfterMsOf(error: unknown): number {
  if (!(error instanceof Error) || !('retryAfterMs' in error)) return 0;
  const { retryAfterMs } = error;
  return typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : 0;
}
