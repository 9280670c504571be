/**
 * Translates Google Cloud failures into errors of core: error answers, errors of accepted operations, and connection
 * failures. Reasons and codes are documented at
 * https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-error-codes and
 * https://cloud.google.com/compute/docs/api/errors.
 */

import type { Attempted, DriverError, ErrorTable, JsonObject } from '@nodepool/core';
import {
  AuthError,
  connectionError,
  errorOfAnswer,
  fileFaultOf,
  isDriverError,
  isJsonObject,
  lineOf,
  stringAt,
} from '@nodepool/core';
import { listAt } from './client/answers.js';

/** Wait if the cloud does not specify one (ms). */
const DEFAULT_RETRY_AFTER_MS = 5000;

const THROTTLED =
  /^(user)?rateLimitExceeded$|^RATE_LIMIT_EXCEEDED$|^concurrentOperationQuotaExceeded$|^RESOURCE_OPERATION_RATE_EXCEEDED$/i;
/** `CPUS_PER_VM_FAMILY_…` and similar codes name the limit of a family of machine types in a region. */
const QUOTA = /quota_?exceeded|^limit_?exceeded$|_PER_VM_FAMILY|_PER_REGION|_PER_PROJECT/i;
const CAPACITY = /RESOURCE_POOL_EXHAUSTED|STOCKOUT|IP_SPACE_EXHAUSTED|VM_MIN_COUNT_NOT_REACHED|^resourcesExhausted$/i;
const NOT_FOUND = /^((resource)?not_?found|deleted|gone)$/i;
const BUSY =
  /^(resourceInUse|resourceNotReady|conditionNotMet|RESOURCE_IN_USE|RESOURCE_NOT_READY|operationInProgress)/i;
/** Reasons of a 400 that only a configuration change resolves. Any other reason is a failure of the single call. */
const CONFIGURATION: ReadonlySet<string> = new Set(['invalid', 'invalidParameter', 'required', 'resourceNotFound']);
/** Errors of a token endpoint, with status 400, that only new credentials resolve (RFC 6749, section 5.2). */
const LOGIN: ReadonlySet<string> = new Set(['invalid_client', 'invalid_grant', 'invalid_scope', 'unauthorized_client']);
/** Permissions for what a label or its pool names: an image, a network, a service account. */
const LABEL_FORBIDDEN =
  /Required '(compute\.(images\.useReadOnly|(sub)?networks\.use\w*|instances\.setServiceAccount)|iam\.serviceAccounts\.actAs)' permission|does not have access to service account/i;
/** Messages of libraries that could not read or use the credentials. */
const NO_CREDENTIALS =
  /credential|(ENOENT|EACCES|EPERM|EISDIR): .*, (open|read)|invalid_grant|private key|DECODER routines|key must be a/i;
/** Operation error codes that only a configuration change resolves. */
const CONFIGURATION_CODES: ReadonlySet<string> = new Set([
  'INVALID_FIELD_VALUE',
  'INVALID_USAGE',
  'SERVICE_ACCOUNT_ACCESS_DENIED',
  'UNSUPPORTED_OPERATION',
]);
/** Operation error codes for failures of the cloud itself. */
const INTERNAL_CODES: ReadonlySet<string> = new Set(['INTERNAL_ERROR', 'BACKEND_ERROR', 'SERVICE_UNAVAILABLE']);

/** Paths of Compute Engine and Cloud Storage. */
const API_PATHS = /\/(compute|storage)\/v1\//;

/** The meaning of error answers: of their status, and of their reason. */
const ERRORS: ErrorTable = {
  vendor: 'Google Cloud',
  retryAfterMs: DEFAULT_RETRY_AFTER_MS,
  rules: [
    { status: 401, error: 'auth' },
    { code: LOGIN, error: 'auth' },
    { status: 429, error: 'throttled' },
    { code: THROTTLED, error: 'throttled' },
    { code: CAPACITY, error: 'capacity' },
    { status: /^(5..|408)$/, error: 'transient' },
    { code: QUOTA, error: 'quota' },
    { status: 403, text: LABEL_FORBIDDEN, error: 'configuration', hint: '; the account needs a role that allows it' },
    { status: 403, error: 'auth', hint: '; the account needs a role that allows it' },
    { status: /^4(04|10)$/, code: NOT_FOUND, error: 'not-found' },
    { status: /^4(04|10)$/, error: 'transient', hint: '; is this an answer of Google Cloud?' },
    { status: /^4(09|12)$/, error: 'conflict' },
    { code: BUSY, error: 'conflict' },
    { status: 400, code: CONFIGURATION, error: 'configuration' },
    { error: 'unexpected', outcome: 'not-applied' },
  ],
};

/** An answer with an error status. */
export interface GoogleAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Value of the `Retry-After` header. */
  readonly retryAfter: string | undefined;
}

/**
 * Returns the `DriverError` for any rejection of Google's library. The library's errors are recognized by their
 * properties, because several copies of it may be loaded.
 */
export function errorOf(attempted: Attempted, error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const answer = answerIn(error);
  if (answer === undefined) return unansweredError(attempted, error);
  const failure = answerError(attempted, answer, error);
  if (failure.code !== 'not-found' || !isOfLogin(error)) return failure;
  return new AuthError(`${failure.message}; the account of the credentials does not exist`, { cause: error });
}

/** Returns true if a call failed due to its credentials: new ones may help. A 403 of the APIs is a permission. */
export function isRefusal(error: unknown, failure: DriverError): boolean {
  return failure.code === 'auth' && (answerIn(error)?.status !== 403 || isOfLogin(error));
}

/** Returns true if a login service answered, which is called before the APIs: a token or a metadata service. */
function isOfLogin(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('config' in error)) return false;
  const { config } = error;
  if (typeof config !== 'object' || config === null || !('url' in config)) return false;
  return !API_PATHS.test(String(config.url));
}

/** Returns the `DriverError` for an error answer. */
export function answerError(attempted: Attempted, answer: GoogleAnswer, cause?: unknown): DriverError {
  const { status, retryAfter } = answer;
  const { reason: code, message: text } = detailOf(answer.body);
  const summary = `${code === undefined ? '' : `${code}: `}${text}`;
  return errorOfAnswer(
    ERRORS,
    { status, code, text, summary, headers: { 'retry-after': retryAfter }, cause },
    attempted,
  );
}

/** The meaning of the codes of failed operations. */
const OPERATION_ERRORS: ErrorTable = {
  ...ERRORS,
  rules: [
    { code: THROTTLED, error: 'throttled' },
    { code: CAPACITY, error: 'capacity' },
    { code: QUOTA, error: 'quota' },
    { code: /NOT_FOUND/, error: 'not-found' },
    { code: /PERMISSION|FORBIDDEN/, error: 'auth' },
    { code: BUSY, error: 'conflict' },
    { code: /ALREADY_EXISTS/, error: 'conflict' },
    { code: CONFIGURATION_CODES, error: 'configuration' },
    { code: INTERNAL_CODES, error: 'transient', outcome: 'unknown' },
    { error: 'unexpected' },
  ],
};

/** Returns the `DriverError` of a failed operation. Its resource does not exist, unless the failure is internal. */
export function operationError(operation: string, errors: readonly JsonObject[]): DriverError {
  const [first = {}] = errors;
  const code = stringAt(first, 'code') ?? 'UNKNOWN';
  const text = errors.map((each) => `${stringAt(each, 'code') ?? ''} ${stringAt(each, 'message') ?? ''}`.trim());
  const attempted = { operation: `${operation} failed`, changesSomething: true, now: 0 };
  return errorOfAnswer(OPERATION_ERRORS, { code, text: '', summary: text.join('; ') }, attempted);
}

function answerIn(error: unknown): GoogleAnswer | undefined {
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

/** Reads `{"error": {"message", "errors": [{"reason"}]}}` (APIs), `{"error", "error_description"}` (login), or text. */
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

function unansweredError(attempted: Attempted, cause: unknown): DriverError {
  const said = messageOf(cause);
  if (!NO_CREDENTIALS.test(said)) return connectionError(attempted, { cause });
  return new AuthError(`${attempted.operation}: no credentials (${lineOf(fileFaultOf(cause))})`, { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
