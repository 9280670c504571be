/** The wait before a retry. */

import type { RandomSource } from './random.js';

/** Limits of a back-off, milliseconds. */
export interface BackOffLimits {
  /** Longest wait after the first failure. Doubles with each further failure in a row. */
  readonly firstMs: number;
  readonly longestMs: number;
}

const DEFAULT_LIMITS: BackOffLimits = { firstMs: 1000, longestMs: 60_000 };

/**
 * Returns the milliseconds to wait after `failures` failures in a row (1 or more), the last of which was `error`: doubling,
 * between half and all of the doubled time at random. `retryAfterMs` of the error lengthens the wait and never shortens it.
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

/** Returns the wait that the error asks for, e.g. a `DriverError` of a cloud that throttles; 0 if it asks for none. */
export function retryAfterMsOf(error: unknown): number {
  if (!(error instanceof Error) || !('retryAfterMs' in error)) return 0;
  const { retryAfterMs } = error;
  return typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : 0;
}
