/**
 * Converts errors of the cloud to errors of core; every driver has such a file, with one table.
 *
 * Two properties must be correct: the class, which controls retries, and `outcome`, which states whether the call took
 * effect. If in doubt, use `unknown`: it only costs a search in the cloud, while a wrong `not-applied` leaves an
 * instance that the launcher does not know.
 */

import type { Attempted, DriverError, ErrorTable } from '@nodepool/core';
import { errorOfAnswer, lineOf, toDriverError } from '@nodepool/core';
import { CloudError } from './cloud/types.js';

const ERRORS: ErrorTable = {
  vendor: 'an example cloud',
  retryAfterMs: 1000,
  rules: [
    // Only a change of the configuration can make this call succeed.
    { code: /^invalid$/, error: 'configuration' },
    { code: /^unauthorized$/, error: 'auth' },
    { code: /^quota$/, error: 'quota' },
    { code: /^no-capacity$/, error: 'capacity' },
    { code: /^not-found$/, error: 'not-found' },
    { code: /^throttled$/, error: 'throttled' },
    // The file was damaged in transit or is not the one that was built; a new upload may succeed.
    { code: /^checksum$/, error: 'transient', outcome: 'not-applied' },
    // A server can fail before or after the call takes effect.
    { code: /^(internal|answer-lost)$/, error: 'transient' },
    // Answers without a code are not of the cloud, but e.g. of a proxy.
    { status: /^40[13]$/, error: 'auth', hint: '; it refuses the credentials' },
    { status: 400, error: 'unexpected', hint: '; is it the endpoint of an example cloud?' },
    { status: 418, error: 'unexpected', hint: '; is it the endpoint of an example cloud?' },
  ],
};

/** Returns the error of core for an error of the cloud, or of the connection. */
export function driverErrorOf(attempted: Attempted, cause: unknown): DriverError {
  if (!(cause instanceof CloudError)) return toDriverError(cause);
  const { code, message, retryAfterSeconds } = cause;
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
  return errorOfAnswer(ERRORS, { code, text: message, summary: message, retryAfterMs, cause }, attempted);
}

/** Returns the error for an answer that the example cloud did not create. */
export function foreignError(attempted: Attempted, status: number, text: string): DriverError {
  return errorOfAnswer(ERRORS, { status, text: lineOf(text) }, attempted);
}
