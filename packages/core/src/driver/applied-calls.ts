/** Remembers whether a remote call has changed something in the cloud, for each piece of work of several calls. */

import type { Outcome } from './error-codes.js';
import { DriverError } from './errors.js';

/** Methods of calls that change nothing. */
const READING = /^(GET|HEAD|LIST|OPTIONS)$/i;

/** Signals of the work in which a call has, or may have, changed something. All calls of such work share a signal. */
const changed = new WeakSet<AbortSignal>();

/** Records the end of a call. `outcome` is that of its error; undefined if the call succeeded. */
export function callEnded(method: string, signal: AbortSignal, outcome: Outcome | undefined): void {
  if (outcome !== 'not-applied' && !READING.test(method)) changed.add(signal);
}

/**
 * Returns the error of a creation whose last call failed with the given error. The default outcome of an error, e.g. of
 * a throttled poll, describes only the call that failed. If an earlier call of the creation has changed something, or if
 * the instance is known, the outcome of the creation is unknown, unless the driver states that nothing was created.
 */
export function creationError(failure: DriverError, signal: AbortSignal, hasInstance = false): DriverError {
  const isDefault = failure.outcome === 'not-applied' && failure.statedOutcome !== 'not-applied';
  if (!isDefault || !(hasInstance || changed.has(signal))) return failure;
  const { code, message, retryAfterMs } = failure;
  return new DriverError(code, message, { outcome: 'unknown', cause: failure, retryAfterMs });
}
