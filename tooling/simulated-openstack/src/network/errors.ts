/** Errors in neutron's format. */

import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import { json } from '../http/request-context.js';

export function networkFailure(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return json(status, { NeutronError: { type, message, detail: '' } }, headers);
}

export function networkError(status: number, type: string, message: string): ApiError {
  return new ApiError(networkFailure(status, type, message));
}

/** Returns the error for an exceeded quota. */
export function overQuota(resource: string): ApiError {
  return networkError(409, 'OverQuota', `Quota exceeded for resources: ['${resource}'].`);
}
