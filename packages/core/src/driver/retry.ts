import { backOffMs } from '../runtime/back-off.js';
import { sleep, type Clock } from '../runtime/clock.js';
import type { RandomSource } from '../runtime/random.js';
import { ERROR_POLICIES, isDriverError } from './errors.js';

/** Wait before the second attempt, and the maximum wait, in milliseconds. */
const BACK_OFF = { firstMs: 2000, longestMs: 60_000 } as const;
const DEFAULT_ATTEMPTS = 5;

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal: AbortSignal;
  /** Total number of attempts. Default 5. */
  readonly attempts?: number | undefined;
}

/** Repeats an idempotent call with back-off while its failures are temporary (`mayPass` of `ERROR_POLICIES`). */
export async function retryPassing<T>(options: RetryOptions, work: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      await waitForRetry(options, error, failures);
    }
  }
}

/** Waits until the next attempt after `failures` failures. Rejects with the error if there is no further attempt. */
export async function waitForRetry(options: RetryOptions, error: unknown, failures: number): Promise<void> {
  const { clock, random, signal, attempts = DEFAULT_ATTEMPTS } = options;
  const passes = isDriverError(error) && ERROR_POLICIES[error.code].mayPass;
  if (!passes || failures >= attempts || signal.aborted) throw error;
  await sleep(clock, backOffMs(failures, error, random, BACK_OFF), signal);
}
