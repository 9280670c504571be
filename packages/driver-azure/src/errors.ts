/**
 * Translates Azure failures into errors of core: codes of the resource manager and of the compute, network and disk
 * services, connection failures, and login failures.
 *
 * Sources: "Troubleshoot common Azure deployment errors", "Understand Azure virtual machine error codes", and the
 * resource manager's page on throttling.
 */

import type { Attempted, DriverError, ErrorTable, JsonValue } from '@nodepool/core';
import {
  AuthError,
  certificateAdvice,
  CertificateError,
  errorOfAnswer,
  isDriverError,
  isJsonObject,
  lineOf,
  networkCauseOf,
  stringAt,
  TransientError,
} from '@nodepool/core';

/** Wait if the cloud does not specify one (ms). */
const DEFAULT_RETRY_AFTER_MS = 10_000;

const QUOTA =
  /QuotaExceeded|quota limit|exceeding approved|LimitReached|PublicIPCountLimitReached|MaxStorageAccountsCount/i;
const CAPACITY =
  /AllocationFailed|SkuNotAvailable|OverconstrainedAllocation|OverconstrainedZonal|InsufficientCapacity|SubnetIsFull|SubnetWithNoAvailableAddress/i;
const THROTTLED =
  /TooManyRequests|OperationNotAllowedThrottled|RetryableErrorDueToThrottling|SubscriptionRequestsThrottled/i;
const RETRYABLE = /^RetryableError/;
const TRANSIENT =
  /RetryableError|InternalExecutionError|InternalServerError|ServerTimeout|ServiceUnavailable|OperationPreempted/i;
const AUTH =
  /AuthorizationFailed|AuthenticationFailed|InvalidAuthenticationToken|ExpiredAuthenticationToken|LinkedAuthorizationFailed/i;
/** An action on an image or an identity that a label names, without permission. */
const LABEL_FORBIDDEN =
  /^LinkedAuthorizationFailed .*'Microsoft\.(ManagedIdentity\/userAssignedIdentities|Compute\/(images|galleries))\//i;
const CONFLICT =
  /AnotherOperationInProgress|InUse|Conflict|AttachDiskWhileBeingDetached|CannotBeDeleted|PropertyChangeNotAllowed|NicReservedForAnotherVm/i;
const NOT_FOUND = /^(ResourceNotFound|NotFound|ResourceGroupNotFound|ParentResourceNotFound)$/;
/** Codes that only a configuration change resolves. Any other code, also of a 400, is a failure of the single call. */
const CONFIGURATION: ReadonlySet<string> = new Set([
  'AvailabilityZoneNotSupported',
  'DisallowedProvider',
  'ImageNotFound',
  'InvalidAvailabilityZone',
  'InvalidIdentityValues',
  'InvalidImageReference',
  'InvalidParameter',
  'InvalidParameterValue',
  'InvalidRequestContent',
  'InvalidRequestFormat',
  'InvalidResourceReference',
  'InvalidResourceType',
  'InvalidSubscription',
  'InvalidSubscriptionId',
  'LocationNotAvailableForResourceType',
  'MissingSubscriptionRegistration',
  'NoRegisteredProviderFound',
  'PlatformImageNotFound',
  'RequestDisallowedByPolicy',
  'ResourcePurchaseValidationFailed',
  'SubscriptionNotFound',
  'SubscriptionNotRegistered',
  'VMMarketplaceInvalidInput',
]);

/** Trouble of a login service that passes. */
const LOGIN_TROUBLE = /network_error|endpoints_resolution_error|ENOTFOUND|ECONN|EAI_AGAIN|timeout|temporarily/i;
/** A status such as 503, but no part of a port, an id or a time. */
const SERVER_ERROR = /(?<![\w:.-])50\d(?![\w-])/;

/** Codes of refusals that may pass: an image version of a gallery is missing in a region until it is replicated. */
const MAY_PASS: ReadonlySet<string> = new Set(['GalleryImageNotFound', 'ImageVersionNotReplicated']);

/** A resource manager error with its innermost reason first. */
export interface CloudError {
  readonly code: string;
  readonly message: string;
}

const ROLE = '; the service principal needs a role that allows it, e.g. Contributor';

/** The meaning of error answers, whose text begins with their code. */
const ERRORS: ErrorTable = {
  vendor: 'Azure',
  retryAfterMs: DEFAULT_RETRY_AFTER_MS,
  rules: [
    { status: 429, error: 'throttled' },
    { status: 401, error: 'auth' },
    { status: /^(5..|408)$/, error: 'transient' },
    // Policy texts come from an operator and can contain any word.
    { code: MAY_PASS, error: 'refused' },
    { code: CONFIGURATION, error: 'configuration' },
    { status: 404, code: /NotFound$/, error: 'not-found' },
    { status: 404, error: 'transient', hint: '; is this an answer of Azure?' },
    { text: QUOTA, error: 'quota' },
    { code: CAPACITY, error: 'capacity' },
    { code: THROTTLED, error: 'throttled' },
    // Azure sends this code with any status if concurrent work blocks the call; the cloud itself is not at fault.
    { code: RETRYABLE, error: 'conflict' },
    { code: TRANSIENT, error: 'transient', outcome: 'not-applied' },
    { code: AUTH, text: LABEL_FORBIDDEN, error: 'configuration', hint: ROLE },
    { status: 403, text: LABEL_FORBIDDEN, error: 'configuration', hint: ROLE },
    { code: AUTH, error: 'auth', hint: ROLE },
    { status: 403, error: 'auth', hint: ROLE },
    { code: NOT_FOUND, error: 'not-found' },
    { status: /^4(09|12)$/, error: 'conflict' },
    { code: CONFLICT, error: 'conflict' },
    { error: 'unexpected', outcome: 'not-applied' },
  ],
};

/** Returns the `DriverError` for a rejection of Azure's libraries. */
export function errorOf(attempted: Attempted, cause: unknown): DriverError {
  if (isDriverError(cause)) return cause;
  const status = numberIn(cause, 'statusCode');
  const said: CloudError = { code: textIn(cause, 'code') ?? '', message: messageOf(cause) };
  const message = `${attempted.operation}: ${status === undefined ? '' : `${status} `}${summary(said)}`;
  if (isLoginFailure(cause)) return loginError(message, said.message, cause);
  if (status === undefined) return unansweredError(attempted, message, cause);
  const answer = { status, code: said.code, text: textOf(said), summary: summary(said), cause };
  return errorOfAnswer(ERRORS, answer, attempted);
}

/** The meaning of the codes of failed operations and resources, which exist. */
const FAILURES: ErrorTable = {
  ...ERRORS,
  rules: [
    { code: MAY_PASS, error: 'refused', outcome: 'applied' },
    { code: CONFIGURATION, error: 'configuration', outcome: 'applied' },
    { text: QUOTA, error: 'quota', outcome: 'applied' },
    { text: CAPACITY, error: 'capacity', outcome: 'applied' },
    { code: THROTTLED, error: 'throttled', outcome: 'applied' },
    { code: TRANSIENT, error: 'transient', outcome: 'applied' },
    { text: LABEL_FORBIDDEN, error: 'configuration', outcome: 'applied' },
    { code: AUTH, error: 'auth', outcome: 'applied' },
    { code: CONFLICT, error: 'conflict', outcome: 'applied' },
    { error: 'instance-failed' },
  ],
};

/** Returns the `DriverError` for a failed operation or resource. The call took effect. */
export function failureOf(what: string, said: CloudError): DriverError {
  const answer = { code: said.code, text: textOf(said), summary: summary(said) };
  return errorOfAnswer(FAILURES, answer, { operation: what, changesSomething: true, now: 0 });
}

/**
 * Reads `{error: {code, message, details: [{code, message}]}}` from an operation or an answer. Returns the code of the
 * first detail, except for a retryable error.
 */
export function cloudErrorIn(body: JsonValue | undefined): CloudError {
  const outer = isJsonObject(body) ? (body['error'] ?? body) : undefined;
  if (!isJsonObject(outer)) return { code: '', message: 'Azure gives no reason' };
  const details = Array.isArray(outer['details']) ? (outer['details'] as readonly JsonValue[]) : [];
  const inner = details.find((detail) => isJsonObject(detail) && stringAt(detail, 'code') !== undefined);
  const chosen = inner !== undefined && isJsonObject(inner) ? inner : outer;
  const code = stringAt(chosen, 'code') ?? '';
  const message = stringAt(chosen, 'message') ?? 'Azure gives no reason';
  const outerCode = stringAt(outer, 'code') ?? '';
  // The reasons of a retryable error have codes of their own, e.g. `ReferencedResourceNotProvisioned`.
  return RETRYABLE.test(outerCode) ? { code: outerCode, message: `${code}: ${message}` } : { code, message };
}

/**
 * Returns the `DriverError` for a failed login, which precedes any call to the cloud. `said` is the text of the library
 * alone, because the address of a login service can contain any digits and words.
 */
function loginError(message: string, said: string, error: unknown): DriverError {
  const passing = (LOGIN_TROUBLE.test(said) || SERVER_ERROR.test(said)) && !/AADSTS/.test(said);
  const options = { cause: error, outcome: 'not-applied' } as const;
  if (passing || isOutage(error)) return new TransientError(message, options);
  return new AuthError(`${message}; correct the file with the credentials, which needs no restart`, options);
}

function isLoginFailure(error: unknown): boolean {
  return (
    error instanceof Error && /^(Authentication|CredentialUnavailable|AuthenticationRequired)\w*Error$/.test(error.name)
  );
}

/**
 * Returns true if the login service answered with 429 or 5xx. Microsoft's library then refuses further logins for a
 * minute, with an error without a status.
 */
function isOutage(error: unknown): boolean {
  const cause = fieldOf(error, 'cause');
  if (textIn(cause, 'name') !== 'ServerError') return false;
  const status = numberIn(cause, 'status');
  return status === undefined || status === 429 || status >= 500;
}

function unansweredError({ changesSomething }: Attempted, message: string, cause: unknown): DriverError {
  const network = networkCauseOf(cause);
  if (network?.code === 'certificate') {
    const advice = certificateAdvice(network.systemCode, '"caFile" of the file with the credentials');
    return new CertificateError(`${message}; the certificate ${advice}`, { cause });
  }
  const harmless = network?.outcome === 'not-applied' || !changesSomething;
  return new TransientError(message, { cause, outcome: harmless ? 'not-applied' : 'unknown' });
}

function textOf({ code, message }: CloudError): string {
  return `${code} ${message}`;
}

function summary({ code, message }: CloudError): string {
  const text = lineOf(message);
  return code === '' || text.includes(code) ? text : `${code}: ${text}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && key in value
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

function textIn(value: unknown, key: string): string | undefined {
  const found = fieldOf(value, key);
  return typeof found === 'string' ? found : undefined;
}

function numberIn(value: unknown, key: string): number | undefined {
  const found = fieldOf(value, key);
  return typeof found === 'number' ? found : undefined;
}
