/**
 * Converts errors of the cloud to errors of Nodepool.
 *
 * Two properties must be correct: the class, which controls retries, and the outcome, which states whether the call
 * took effect. If in doubt, use `unknown`: it only costs a search in the cloud, while a wrong `not-applied` leaves an
 * instance that the launcher does not know. The outcome is that of the single call: if a poll fails after the cloud has
 * accepted a creation, the framework searches for the instance.
 */

import { connectionError, errorOfAnswer, type Attempted, type DriverError, type ErrorTable } from '@nodepool/core';
import { ForeignAnswerError, TinyCloudError } from './tiny-cloud.js';

/** The meaning of the cloud's errors. The first rule that applies counts. */
const ERRORS: ErrorTable = {
  vendor: 'mycloud',
  retryAfterMs: 1000,
  rules: [
    { code: /^invalid$/, error: 'configuration' },
    { code: /^unauthorized$/, error: 'auth' },
    { code: /^quota$/, error: 'quota' },
    { code: /^no-capacity$/, error: 'capacity' },
    { code: /^not-found$/, error: 'not-found' },
    { code: /^conflict$/, error: 'conflict' },
    { code: /^throttled$/, error: 'throttled' },
    // The call may have failed before or after it took effect.
    { code: /^(internal|connection-lost)$/, error: 'transient' },
  ],
};

/** Returns the error of a call as a Nodepool error. */
export function driverErrorOf(error: unknown, attempted: Attempted): DriverError {
  if (error instanceof TinyCloudError) {
    return errorOfAnswer(ERRORS, { code: error.code, text: error.message, cause: error }, attempted);
  }
  // A proxy may answer with 404 although the instance exists. Only a 404 in the format of the cloud is a proof.
  if (error instanceof ForeignAnswerError) {
    return errorOfAnswer(ERRORS, { status: error.status, text: error.message, cause: error }, attempted);
  }
  return connectionError(attempted, { cause: error });
}
