/**
 * Translates failures of a cluster into errors of core: error statuses, connection failures, and the objects `Status`
 * in answers and watches (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
 */

import type { Attempted, DriverError, ErrorTable, JsonObject, MakeError } from '@nodepool/core';
import {
  AuthError,
  ConflictError,
  connectionError,
  errorOfAnswer,
  isJsonObject,
  lineOf,
  numberAt,
  objectAt,
  retryAfterMsIn,
  stringAt,
  TransientError,
} from '@nodepool/core';
import { listAt } from './client/objects.js';

/** Wait if the cluster does not specify one (ms). */
const DEFAULT_RETRY_AFTER_MS = 1000;

/** Refusals of the admission plugins ResourceQuota (Kubernetes) and ProjectRequestLimit (OpenShift). */
const QUOTA = /exceeded quota|cannot create more than \d+ project/i;
/** Refusals by the API server itself, and not by a proxy before it. */
const BY_SERVER = /\bforbidden: /;
/** Refusal by the authorizer; all other refusals of the server with status 403 come from admission plugins. */
const NO_PERMISSION = /\bcannot \w+ (resource|path)|attempting to grant .*permissions not currently held/i;
/** Reasons that only a change of the configuration resolves. Any other is a failure of the single call. */
const CONFIGURATION: ReadonlySet<string> = new Set(['BadRequest', 'Invalid', 'RequestEntityTooLarge']);
/** Refusal of an admission webhook, of any status and reason. The webhook may lack its backend or data for now. */
const DENIED = /\bdenied the request/i;
/** Failure of an API server to call a webhook, before the object is stored. */
const WEBHOOK_AWAY = /failed calling webhook|failed to call webhook/i;
/** Refusal by the admission plugins of an API server that has just started. */
const STARTING = /not yet ready to handle request/i;
/** Refusals of a pod until controllers have created the default service account and evaluated a new quota. */
const NOT_YET = /error looking up service account|no API token found for service account|status unknown for quota/i;

/** Cause in a `Status`: the namespace is being deleted. */
const TERMINATING = 'NamespaceTerminating';
const ROLE = '; the account of the context needs a role that allows it';

/** The cluster's authorizer refuses the call. OpenShift does so for projects that do not exist, too. */
export class ForbiddenError extends AuthError {}

export class AlreadyExistsError extends ConflictError {}

/** An object of the name exists and belongs to another owner. */
export class ForeignObjectError extends ConflictError {}

export class TerminatingError extends ConflictError {}

/** The version of a watch or the token of a list's page is too old; the list must be read again. */
export class ExpiredError extends TransientError {}

/** An answer with an error status. */
export class ApiStatusError extends Error {
  constructor(
    readonly status: number,
    readonly text: string,
  ) {
    super(`status ${status}`);
  }
}

/** The meaning of answers: of their status, the reason in their `Status`, and its message. */
const ERRORS: ErrorTable = {
  vendor: 'Kubernetes',
  retryAfterMs: DEFAULT_RETRY_AFTER_MS,
  rules: [
    { status: 401, error: 'auth' },
    { status: 403, text: STARTING, error: 'transient', outcome: 'not-applied' },
    { status: 403, text: NOT_YET, error: 'conflict' },
    { status: 403, text: QUOTA, error: 'quota' },
    { status: 403, code: new Set([TERMINATING]), error: make(TerminatingError) },
    { status: 403, text: /being terminated/, error: make(TerminatingError) },
    { status: 403, text: DENIED, error: 'refused' },
    { status: 403, text: NO_PERMISSION, error: make(ForbiddenError), hint: ROLE },
    { status: 403, code: /^Forbidden$/, text: BY_SERVER, error: 'configuration' },
    { status: 403, error: 'auth', hint: ROLE },
    // A proxy answers with 404 without a reason, which does not prove that the object is deleted.
    { status: 404, code: /^NotFound$/, error: 'not-found' },
    { status: 409, code: /^AlreadyExists$/, error: make(AlreadyExistsError) },
    { status: 409, error: 'conflict' },
    { status: 410, error: (message) => new ExpiredError(message, { outcome: 'not-applied' }) },
    { status: 429, error: 'throttled' },
    { status: /^(5..|40[48])$/, text: WEBHOOK_AWAY, error: 'transient', outcome: 'not-applied' },
    { status: /^(5..|40[48])$/, error: 'transient' },
    { text: DENIED, error: 'refused' },
    { code: CONFIGURATION, error: 'configuration' },
    { status: /^4/, error: 'unexpected', outcome: 'not-applied' },
    { error: 'unexpected', hint: '; is this the address of a Kubernetes API?' },
  ],
};

function make(Kind: new (message: string) => DriverError): MakeError {
  return (message) => new Kind(message);
}

/** Returns the `DriverError` for an answer with an error status. `source` is the origin of the credentials. */
export function errorOf(attempted: Attempted, { status, text }: ApiStatusError, source = 'the context'): DriverError {
  const failure = statusError(attempted, status, statusIn(text));
  if (status === 401) {
    failure.message += `; the cluster refuses the credentials of ${source}; replace them there, without a restart`;
  }
  return failure;
}

/** Returns the `DriverError` for an event `ERROR` of a watch. */
export function watchErrorOf(operation: string, status: JsonObject, now: number): DriverError {
  return statusError({ operation, changesSomething: false, now }, numberAt(status, 'code') ?? 500, status);
}

function statusError(attempted: Attempted, status: number, object: JsonObject): DriverError {
  const reason = stringAt(object, 'reason') ?? '';
  const text = lineOf(stringAt(object, 'message') ?? '');
  const details = objectAt(object, 'details') ?? {};
  const isTerminating = listAt(details, 'causes').some((each) => stringAt(each, 'reason') === TERMINATING);
  const seconds = numberAt(details, 'retryAfterSeconds') ?? 0;
  const retryAfterMs = seconds > 0 ? retryAfterMsIn(String(seconds), attempted.now) : undefined;
  const summary = reason === '' ? text : `${reason}: ${text}`;
  const code = isTerminating ? TERMINATING : reason;
  return errorOfAnswer(ERRORS, { status, code, text, summary, retryAfterMs }, attempted);
}

/** Returns the `Status` of an answer; proxies answer with other texts. */
function statusIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Not JSON: the text itself is the message.
    return { message: text };
  }
  return { message: text };
}

/** Returns the `DriverError` for a connection failure. */
export function connectionErrorOf(attempted: Attempted, server: string, cause: unknown): DriverError {
  const trust = '"certificate-authority" of the cluster in the kubeconfig file';
  return connectionError(attempted, { cause, to: server, trust });
}
