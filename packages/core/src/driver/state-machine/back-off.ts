/** How long to wait before something is tried again. */

import type { RandomSource } from '../../runtime/random.js';
import type { DriverError } from '../errors.js';

const FIRST_MS = 1000;
const LONGEST_MS = 60_000;

/**
 * Milliseconds to wait after so many failures in a row (1 or more), the last of which was `error`: doubling, with jitter,
 * at least what the cloud asked for.
 */
export function backOffMs(failures: number, error: DriverError, random: RandomSource): number {
  const longest = Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  const delay = longest * (0.5 + random.next() / 2);
  return Math.max(delay, error.retryAfterMs ?? 0);
}
