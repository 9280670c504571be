/**
 * From what the cloud says to what core understands.
 *
 * Every driver has this file. Core decides by the kind of an error whether to try again, when, and whether to look for the
 * effect of the call first, so two things must be right: the class, and `outcome`, which says whether the call took
 * effect. When in doubt the outcome is `unknown`: that costs a look at the cloud, where a wrong `not-applied` costs an
 * instance that the launcher does not know of.
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

/** `error`, which stopped `operation`, as core understands it. Errors that it understands already stay as they are. */
export function driverErrorOf(operation: string, error: unknown): DriverError {
  if (error instanceof CloudError) return fromCloudError(operation, error);
  return isDriverError(error) ? error : toDriverError(error);
}

/** The status for metrics: of HTTP where the cloud has answered, else the code. */
export function statusOf(error: unknown): number | string {
  if (!(error instanceof CloudError)) return toDriverError(error).code;
  return CLOUD_ERROR_STATUS[error.code] || error.code;
}

/** An answer that is no error of the example cloud itself, e.g. that of a proxy before it. */
export function driverErrorOfStatus(operation: string, status: number, retryAfterMs: number | undefined): DriverError {
  const message = `${operation}: the endpoint answered with HTTP status ${status}`;
  if (status === 401 || status === 403) return new AuthError(`${message}: it refuses our credentials`);
  if (status === 404) return new NotFoundError(message);
  if (status === 409) return new ConflictError(message);
  if (status === 429) return new ThrottledError(message, { retryAfterMs });
  if (status >= 500) return new TransientError(message, { retryAfterMs });
  return new DriverError('unexpected', `${message}; is it the endpoint of an example cloud?`);
}

function fromCloudError(operation: string, error: CloudError): DriverError {
  const message = `${operation}: ${error.message}`;
  const options = { cause: error };
  switch (error.code) {
    // Nothing but a change of the configuration makes this call right.
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
    // The file was damaged on its way, or is not the one that was built: an upload is worth another try.
    case 'checksum':
      return new TransientError(message, { ...options, outcome: 'not-applied' });
    // A server that breaks down may do so before or after the work: the outcome is unknown.
    case 'internal':
    case 'answer-lost':
      return new TransientError(message, { ...options, outcome: 'unknown' });
  }
}
