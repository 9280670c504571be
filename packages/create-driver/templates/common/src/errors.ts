/**
 * Converts errors of the cloud to errors of Nodepool.
 *
 * Two properties must be correct: the class, which controls retries, and the outcome, which states whether the call
 * took effect. If in doubt, use `unknown`: it only costs a search in the cloud, while a wrong `not-applied` leaves an
 * instance that the launcher does not know. The outcome is that of the single call: if a poll fails after the cloud has
 * accepted a creation, the framework searches for the instance.
 */

import {
  AuthError,
  CapacityError,
  ConfigurationError,
  ConflictError,
  NotFoundError,
  QuotaError,
  ThrottledError,
  toDriverError,
  TransientError,
  type DriverError,
} from '@nodepool/core';
import { ForeignAnswerError, TinyCloudError } from './tiny-cloud.js';

const RETRY_AFTER_MS = 1000;

/** Returns the error of `operation` as a Nodepool error. */
export function driverErrorOf(operation: string, error: unknown): DriverError {
  // A proxy may answer with 404 although the instance exists. Only a 404 in the format of the cloud is a proof.
  if (error instanceof ForeignAnswerError) {
    return new TransientError(`mycloud, ${operation}: ${error.message}`, { cause: error, outcome: 'unknown' });
  }
  if (!(error instanceof TinyCloudError)) return toDriverError(error);
  const message = `mycloud, ${operation}: ${error.message}`;
  const options = { cause: error };
  switch (error.code) {
    case 'invalid':
      return new ConfigurationError(message, options);
    case 'unauthorized':
      return new AuthError(message, options);
    case 'quota':
      return new QuotaError(message, options);
    case 'no-capacity':
      return new CapacityError(message, options);
    case 'not-found':
      return new NotFoundError(message, options);
    case 'conflict':
      return new ConflictError(message, options);
    case 'throttled':
      return new ThrottledError(message, { ...options, retryAfterMs: RETRY_AFTER_MS });
    // The call may have failed before or after it took effect.
    case 'internal':
    case 'connection-lost':
      return new TransientError(message, { ...options, outcome: 'unknown' });
  }
}
