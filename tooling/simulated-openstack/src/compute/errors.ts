/** Errors in nova's format. */

import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import { json } from '../http/request-context.js';

const KINDS: Readonly<Record<number, string>> = {
  400: 'badRequest',
  403: 'forbidden',
  404: 'itemNotFound',
  409: 'conflictingRequest',
  413: 'overLimit',
  429: 'overLimit',
  503: 'serviceUnavailable',
};

export function computeFailure(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    ...json(status, { [KINDS[status] ?? 'computeFault']: { code: status, message } }, headers),
    type: 'application/json; charset=UTF-8',
  };
}

export function computeError(status: number, message: string, headers?: Readonly<Record<string, string>>): ApiError {
  return new ApiError(computeFailure(status, message, headers));
}

export function malformed(): ApiError {
  return computeError(400, 'Malformed request body');
}
