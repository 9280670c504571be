/** Answers of the API in case of an error: the object `Status`. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import { ApiError, type Answer } from '@nodepool/simulated-cloud';

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

export function statusObject(code: number, message: string, more: JsonObject = {}): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: REASONS[code] ?? '',
    code,
    ...more,
  };
}

export function statusAnswer(code: number, message: string, more: JsonObject = {}): Answer {
  return { status: code, body: statusObject(code, message, more) };
}

export function apiError(code: number, message: string, more: JsonObject = {}): ApiError {
  return new ApiError(statusAnswer(code, message, more), message);
}

export function notFound(kind: string, name: string): ApiError {
  return apiError(404, `${kind} "${name}" not found`, { details: { name, kind } });
}

export function alreadyExists(kind: string, name: string): ApiError {
  return apiError(409, `${kind} "${name}" already exists`, { reason: 'AlreadyExists', details: { name, kind } });
}

export function forbidden(kind: string, name: string, why: string, causes: readonly JsonValue[] = []): ApiError {
  const details = { name, kind, ...(causes.length === 0 ? {} : { causes }) };
  return apiError(403, `${kind} "${name}" is forbidden: ${why}`, { details });
}

export function invalid(kind: string, name: string, field: string, why: string): ApiError {
  return apiError(422, `${kind} "${name}" is invalid: ${field}: Invalid value: ${why}`, { details: { name, kind } });
}
