/** Tells the outcome of a creation of several remote calls from the outcome of the call that failed. */

import { DriverError, toDriverError } from './errors.js';

/** Methods of calls that change nothing. */
const READING = /^(GET|HEAD|LIST|OPTIONS)$/i;

/** Signals of the work in which a call has, or may have, changed something. All calls of such work share a signal. */
const changed = new WeakSet<AbortSignal>();
/** Errors of single calls. */
const callErrors = new WeakSet();

/** Records the success of a call of the work with the signal. */
export function callSucceeded(method: string, signal: AbortSignal): void {
  if (!READING.test(method)) changed.add(signal);
}

/** Records the failure of a call. */
export function callFailed(method: string, signal: AbortSignal, error: unknown): void {
  const { outcome } = toDriverError(error);
  if (outcome !== 'not-applied' && !READING.test(method)) changed.add(signal);
  if (typeof error === 'object' && error !== null) callErrors.add(error);
}

/** Records that a search has found nothing that the calls of the work have created. */
export function nothingApplied(signal: AbortSignal): void {
  changed.delete(signal);
}

/**
 * Returns the error of a creation that ended with the given one. The outcome of a call, e.g. of a throttled poll, is
 * not that of the creation: if an earlier call has changed something, or if the instance is known, something may
 * exist. Errors that do not come from a call, e.g. for a failed operation, keep their outcome.
 */
export function creationError(failure: DriverError, signal: AbortSignal, hasInstance = false): DriverError {
  const { code, message, retryAfterMs, outcome } = failure;
  const isDoubtful = hasInstance || (changed.has(signal) && isOfCall(failure));
  if (outcome !== 'not-applied' || !isDoubtful) return failure;
  return new DriverError(code, message, { outcome: 'unknown', cause: failure, retryAfterMs });
}

/** Returns true if the error or one of its causes is that of a call. */
function isOfCall(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  return callErrors.has(error) || ('cause' in error && isOfCall(error.cause));
}
