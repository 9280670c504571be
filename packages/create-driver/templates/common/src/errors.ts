/**
 * Converts errors of the cloud to errors of Nodepool.
 *
 * Two properties must be correct: the class, which controls retries, and the outcome, which states whether the call
 * took effect. If in doubt, use `unknown`: it only costs a search in the cloud, while a wrong `not-applied` leaves an
 * instance that the launcher does not know.
 */

import {
  AuthError,
  CapacityError,
  ConfigurationError,
  NotFoundError,
  QuotaError,
  ThrottledError,
  toDriverError,
  TransientError,
  type DriverError,
} from '@nodepool/core';
import { TinyCloudError } from './tiny-cloud.js';

const RETRY_AFTER_MS = 1000;

/** Returns the error of `operation` as a Nodepool error. */
export function driverErrorOf(operation: string, error: unknown): DriverError {
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
    case 'throttled':
      return new ThrottledError(message, { ...options, retryAfterMs: RETRY_AFTER_MS });
    // The call may have failed before or after it took effect.
    case 'internal':
    case 'connection-lost':
      return new TransientError(message, { ...options, outcome: 'unknown' });
  }
}
