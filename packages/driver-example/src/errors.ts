/**
 * Converts errors of the cloud to errors of core; every driver has such a file.
 *
 * Two properties must be correct: the class, which controls retries, and `outcome`, which states whether the call took
 * effect. If in doubt, use `unknown`: it only costs a search in the cloud, while a wrong `not-applied` leaves an
 * instance that the launcher does not know.
 */

import {
  AuthError,
  CapacityError,
  ConfigurationError,
  ConflictError,
  DriverError,
  isDriverError,
  NotFoundError,
  QuotaError,
  ThrottledError,
  toDriverError,
  TransientError,
} from '@nodepool/core';
import { CLOUD_ERROR_STATUS, CloudError } from './cloud/types.js';

/** Returns the error of `operation` as an error of core. Errors of core are returned unchanged. */
export function driverErrorOf(operation: string, error: unknown): DriverError {
  if (error instanceof CloudError) return fromCloudError(operation, error);
  return isDriverError(error) ? error : toDriverError(error);
}

/** Returns the status for metrics: the HTTP status if the cloud has responded, otherwise the error code. */
export function statusOf(error: unknown): number | string {
  if (!(error instanceof CloudError)) return toDriverError(error).code;
  return CLOUD_ERROR_STATUS[error.code] || error.code;
}

/** Converts an error response that the example cloud did not create, e.g. one of a proxy. */
export function driverErrorOfStatus(operation: string, status: number, retryAfterMs: number | undefined): DriverError {
  const message = `${operation}: the endpoint answered with HTTP status ${status}`;
  if (status === 401 || status === 403) return new AuthError(`${message}: it refuses the credentials`);
  if (status === 409) return new ConflictError(message);
  if (status === 429) return new ThrottledError(message, { retryAfterMs });
  // A 404 of a proxy does not prove that the instance is deleted.
  if (status >= 500 || status === 404) return new TransientError(message, { retryAfterMs });
  return new DriverError('unexpected', `${message}; is it the endpoint of an example cloud?`);
}

function fromCloudError(operation: string, error: CloudError): DriverError {
  const message = `${operation}: ${error.message}`;
  const options = { cause: error };
  switch (error.code) {
    // Only a change of the configuration can make this call succeed.
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
      return new ThrottledError(message, { ...options, retryAfterMs: (error.retryAfterSeconds ?? 1) * 1000 });
    // The file was damaged in transit or is not the one that was built; a new upload may succeed.
    case 'checksum':
      return new TransientError(message, { ...options, outcome: 'not-applied' });
    // A server can fail before or after the call takes effect, so the outcome is unknown.
    case 'internal':
    case 'answer-lost':
      return new TransientError(message, { ...options, outcome: 'unknown' });
  }
}
