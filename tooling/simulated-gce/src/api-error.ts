/** Errors in the format of Google's APIs. */

import { ApiError } from '@nodepool/simulated-cloud';

/** See https://cloud.google.com/compute/docs/api/errors. */
export class GceError extends ApiError {
  constructor(status: number, reason: string, message: string, domain = 'global') {
    super({ status, body: { error: { code: status, message, errors: [{ message, domain, reason }] } } }, message);
  }
}

export function notFound(resource: string): GceError {
  return new GceError(404, 'notFound', `The resource '${resource}' was not found`);
}

/** Returns the error for a path without a method. */
export function notFoundAt(path: string): GceError {
  return new GceError(404, 'notFound', `Not found: ${path}`);
}

export function alreadyExists(resource: string): GceError {
  return new GceError(409, 'alreadyExists', `The resource '${resource}' already exists`);
}

export function invalid(message: string): GceError {
  return new GceError(400, 'invalid', message);
}
