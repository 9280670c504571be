/**
 * From what Google Cloud says to what core understands: error answers, the errors of operations that were accepted and
 * then failed, and failures of connections. Reasons and codes are those of
 * https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-error-codes and https://cloud.google.com/compute/docs/api/errors.
 */

import {
  AuthError,
  CapacityError,
  ConfigurationError,
  ConflictError,
  DriverError,
  isDriverError,
  isJsonObject,
  networkCauseOf,
  NotFoundError,
  numberAt,
  QuotaError,
  stringAt,
  ThrottledError,
  TransientError,
  type JsonObject,
  type Outcome,
} from '@nodepool/core';
import { listAt } from './client/answers.js';

/** How long to leave a cloud alone that does not say so. */
const DEFAULT_RETRY_AFTER_MS = 5000;
const MAX_RETRY_AFTER_MS = 600_000;
const MAX_DETAIL = 500;

const THROTTLED =
  /^(user)?rateLimitExceeded$|^RATE_LIMIT_EXCEEDED$|^concurrentOperationQuotaExceeded$|^RESOURCE_OPERATION_RATE_EXCEEDED$/i;
const QUOTA = /quota_?exceeded|^limitExceeded$/i;
const CAPACITY = /RESOURCE_POOL_EXHAUSTED|STOCKOUT|IP_SPACE_EXHAUSTED|^resourcesExhausted$/i;
const BUSY =
  /^(resourceInUse|resourceNotReady|conditionNotMet|RESOURCE_IN_USE|RESOURCE_NOT_READY|operationInProgress)/i;
/** Reasons of a 400 that only another configuration changes. All others are taken for failures of this one call. */
const CONFIGURATION: ReadonlySet<string> = new Set(['invalid', 'invalidParameter', 'required', 'resourceNotFound']);
/** The same, of operations. */
const CONFIGURATION_CODES: ReadonlySet<string> = new Set([
  'INVALID_FIELD_VALUE',
  'INVALID_USAGE',
  'UNSUPPORTED_OPERATION',
]);
/** Operations that the cloud itself could not carry out. */
const INTERNAL_CODES: ReadonlySet<string> = new Set(['INTERNAL_ERROR', 'BACKEND_ERROR', 'SERVICE_UNAVAILABLE']);

/** A failed call. */
export interface Attempted {
  /** For messages: `instances.insert`. */
  readonly operation: string;
  /** It can have taken effect although it failed. */
  readonly changesSomething: boolean;
}

/** An answer with an error status. */
export interface ErrorAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Of the header Retry-After. */
  readonly retryAfter: string | undefined;
}

/** Whatever a call of Google's library was rejected with. Its errors are known by their shape: there may be several copies. */
export function errorOf(attempted: Attempted, error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const answer = answerIn(error);
  return answer === undefined ? connectionError(attempted, error) : answerError(attempted, answer, error);
}

/** An error answer, as core understands it. */
export function answerError(attempted: Attempted, answer: ErrorAnswer, cause?: unknown): DriverError {
  const { status } = answer;
  const { reason, message: said } = detailOf(answer.body);
  const message = `${attempted.operation}: ${status} ${reason === undefined ? '' : `${reason}: `}${said}`;
  const outcome: Outcome = attempted.changesSomething ? 'unknown' : 'not-applied';
  if (status === 401) return new AuthError(message, { cause });
  if (status === 429 || (reason !== undefined && THROTTLED.test(reason))) {
    return new ThrottledError(message, { cause, retryAfterMs: retryAfterMs(answer.retryAfter) });
  }
  if (reason !== undefined && CAPACITY.test(reason)) return new CapacityError(message, { cause });
  if (status >= 500 || status === 408) return new TransientError(message, { cause, outcome });
  if (reason !== undefined && QUOTA.test(reason)) return new QuotaError(message, { cause });
  if (status === 403) return new AuthError(`${message}; the account needs a role that allows it`, { cause });
  if (status === 404 || status === 410) return new NotFoundError(message, { cause });
  if (status === 409 || status === 412 || (reason !== undefined && BUSY.test(reason))) {
    return new ConflictError(message, { cause });
  }
  if (status === 400 && reason !== undefined && CONFIGURATION.has(reason)) {
    return new ConfigurationError(message, { cause });
  }
  return new DriverError('unexpected', message, { cause, outcome: 'not-applied' });
}

/** An operation that has ended with errors. What it was to make does not exist then, unless the cloud itself is in trouble. */
export function operationError(operation: string, errors: readonly JsonObject[]): DriverError {
  const [first = {}] = errors;
  const code = stringAt(first, 'code') ?? 'UNKNOWN';
  const message = `${operation} failed: ${errors.map((each) => `${stringAt(each, 'code') ?? ''} ${stringAt(each, 'message') ?? ''}`.trim()).join('; ')}`;
  const outcome: Outcome = 'not-applied';
  if (THROTTLED.test(code)) return new ThrottledError(message, { retryAfterMs: DEFAULT_RETRY_AFTER_MS });
  if (CAPACITY.test(code)) return new CapacityError(message, { outcome });
  if (QUOTA.test(code)) return new QuotaError(message, { outcome });
  if (/NOT_FOUND/.test(code)) return new NotFoundError(message, { outcome });
  if (/PERMISSION|FORBIDDEN/.test(code)) return new AuthError(message, { outcome });
  if (BUSY.test(code) || /ALREADY_EXISTS/.test(code)) return new ConflictError(message, { outcome });
  if (CONFIGURATION_CODES.has(code)) return new ConfigurationError(message, { outcome });
  if (INTERNAL_CODES.has(code)) return new TransientError(message);
  return new DriverError('unexpected', message);
}

function answerIn(error: unknown): ErrorAnswer | undefined {
  if (typeof error !== 'object' || error === null || !('response' in error)) return undefined;
  const { response } = error;
  if (typeof response !== 'object' || response === null || !('status' in response)) return undefined;
  const { status } = response;
  if (typeof status !== 'number' || status === 0) return undefined;
  const headers = 'headers' in response ? response.headers : undefined;
  const retryAfter = headers instanceof Headers ? (headers.get('retry-after') ?? undefined) : undefined;
  return { status, body: 'data' in response ? response.data : undefined, retryAfter };
}

interface Detail {
  readonly reason: string | undefined;
  readonly message: string;
}

/** `{"error": {"message", "errors": [{"reason"}]}}` of the APIs, `{"error", "error_description"}` of logins, or text. */
function detailOf(body: unknown): Detail {
  const parsed = typeof body === 'string' ? parsedOr(body) : body;
  if (!isJsonObject(parsed))
    return {
      reason: undefined,
      message: lineOf(typeof parsed === 'string' ? parsed : JSON.stringify(parsed ?? 'no reason was given')),
    };
  const error = parsed['error'];
  if (!isJsonObject(error)) {
    const message = stringAt(parsed, 'error_description') ?? stringAt(parsed, 'error') ?? JSON.stringify(parsed);
    return { reason: stringAt(parsed, 'error'), message: lineOf(message) };
  }
  const [first] = listAt(error, 'errors');
  const reason = first === undefined ? stringAt(error, 'status') : stringAt(first, 'reason');
  return { reason, message: lineOf(stringAt(error, 'message') ?? JSON.stringify(error)) };
}

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function lineOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL);
}

/** Seconds; a date is as good as nothing said. */
function retryAfterMs(header: string | undefined): number {
  const seconds = header === undefined ? undefined : numberAt({ header }, 'header');
  return seconds === undefined ? DEFAULT_RETRY_AFTER_MS : Math.min(Math.max(seconds * 1000, 0), MAX_RETRY_AFTER_MS);
}

function connectionError({ operation, changesSomething }: Attempted, cause: unknown): DriverError {
  const network = networkCauseOf(cause);
  const reason = network?.systemCode ?? (cause instanceof Error ? lineOf(cause.message) : String(cause));
  if (/default credentials|credential|ENOENT.*\.json|invalid_grant|private key/i.test(messageOf(cause))) {
    return new AuthError(
      `${operation}: no credentials (${lineOf(messageOf(cause))}); set "credentials-file", or GOOGLE_APPLICATION_CREDENTIALS`,
      { cause },
    );
  }
  if (network?.outcome === 'not-applied') {
    return new TransientError(`${operation}: cannot connect (${reason})`, { cause, outcome: 'not-applied' });
  }
  const outcome = changesSomething ? 'unknown' : 'not-applied';
  return new TransientError(`${operation}: the connection broke before the answer came (${reason})`, {
    cause,
    outcome,
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
