/**
 * From what the cloud says to what Nodepool understands.
 *
 * Two things must be right: the class, which decides whether and when something is tried again, and the outcome, which
 * says whether the call took effect. When in doubt it is `unknown`: that costs a look at the cloud, where a wrong
 * `not-applied` costs an instance that the launcher does not know of.
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

/** `error`, which stopped `operation`, as Nodepool understands it. */
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
    // It may have failed before or after the work.
    case 'internal':
    case 'connection-lost':
      return new TransientError(message, { ...options, outcome: 'unknown' });
  }
}
