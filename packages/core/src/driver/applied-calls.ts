/** Tells the outcome of a creation of several remote calls from the outcome of the call that failed. */

import { DriverError } from './errors.js';

/** Signals of the work in which a call has, or may have, changed something. All calls of such work share a signal. */
const changed = new WeakSet<AbortSignal>();
/** Errors of single calls. */
const callErrors = new WeakSet();
/** The signals of works by those of their parts, which have limits of their own. */
const wholes = new WeakMap<AbortSignal, AbortSignal>();

/** Records that the work with the first signal is a part of the work with the second one. */
export function isPartOf(part: AbortSignal, whole: AbortSignal): void {
  wholes.set(part, wholeOf(whole));
}

/** Records that a call of the work has, or may have, changed something. */
export function callApplied(signal: AbortSignal): void {
  changed.add(wholeOf(signal));
}

/** Records that an error is that of a single call. */
export function recordCallError(error: DriverError): void {
  callErrors.add(error);
}

/** Records that a search has found nothing that the calls of the work have created. */
export function nothingApplied(signal: AbortSignal): void {
  changed.delete(wholeOf(signal));
}

/**
 * Returns the error of a creation that ended with the given one. The outcome of a call, e.g. of a throttled poll, is
 * not that of the creation: if an earlier call has changed something, or if the instance is known, something may
 * exist. Errors that do not come from a call, e.g. for a failed operation, keep their outcome.
 */
export function creationError(failure: DriverError, signal: AbortSignal, hasInstance = false): DriverError {
  const { code, message, retryAfterMs, outcome } = failure;
  const isDoubtful = hasInstance || (changed.has(wholeOf(signal)) && isOfCall(failure));
  if (outcome !== 'not-applied' || !isDoubtful) return failure;
  return new DriverError(code, message, { outcome: 'unknown', cause: failure, retryAfterMs });
}

/**
 * Returns true if the outcome of the error is that of a call, which is the error itself or one of its causes. If a call
 * had another outcome, the machine has found out the effect, e.g. by a search.
 */
function isOfCall(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  if (callErrors.has(error)) return 'outcome' in error && error.outcome === 'not-applied';
  return 'cause' in error && isOfCall(error.cause);
}

function wholeOf(signal: AbortSignal): AbortSignal {
  return wholes.get(signal) ?? signal;
}
