/**
 * Translates failures of a cluster into errors of core: error statuses, connection failures, and the objects `Status`
 * in answers and watches (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
 */

import {
  AuthError,
  certificateAdvice,
  CertificateError,
  ConfigurationError,
  ConflictError,
  DriverError,
  isDriverError,
  isJsonObject,
  networkCauseOf,
  NotFoundError,
  numberAt,
  objectAt,
  QuotaError,
  RefusedError,
  retryAfterMsIn,
  stringAt,
  ThrottledError,
  TransientError,
  type JsonObject,
} from '@nodepool/core';
import { listAt } from './client/objects.js';

/** Maximum length of a cluster's error text in messages (characters). */
const MAX_DETAIL = 500;
/** Wait if the cluster does not specify one (ms). */
const DEFAULT_RETRY_AFTER_MS = 1000;

/** Refusals of the admission plugins ResourceQuota (Kubernetes) and ProjectRequestLimit (OpenShift). */
const QUOTA = /exceeded quota|cannot create more than \d+ project/i;
/** Refusal by the authorizer; all other refusals with status 403 come from admission plugins. */
const NO_PERMISSION = /\bcannot \w+ (resource|path)|attempting to grant .*permissions not currently held/i;
/**
 * Reasons that only a change of the configuration resolves. Any other refusal counts as a failure of the single call.
 */
const CONFIGURATION: ReadonlySet<string> = new Set(['BadRequest', 'Invalid', 'RequestEntityTooLarge']);
/**
 * Refusal of an admission webhook, which can have any status and reason. The webhook may lack its backend or its data
 * at the moment.
 */
const DENIED = /\bdenied the request/i;
/** Failure of an API server to call a webhook, before the object is stored. */
const WEBHOOK_AWAY = /failed calling webhook|failed to call webhook/i;
/** Refusal by the admission plugins of an API server that has just started. */
const STARTING = /not yet ready to handle request/i;
/** Refusals of a pod until controllers have created the default service account and evaluated a new quota. */
const NOT_YET = /error looking up service account|no API token found for service account|status unknown for quota/i;

/** The cluster's authorizer refuses the call. OpenShift does so for projects that do not exist, too. */
export class ForbiddenError extends AuthError {}

/** The object exists already. */
export class AlreadyExistsError extends ConflictError {}

/** An object of the name exists and belongs to another owner. */
export class ForeignObjectError extends ConflictError {}

/** The namespace is being deleted. */
export class TerminatingError extends ConflictError {}

/** The version of a watch or the token of a list's page is too old; the list must be read again. */
export class ExpiredError extends TransientError {}

/** A failed call, for messages. */
export interface Attempted {
  /** e.g. `create pods in main-0000000001`. */
  readonly operation: string;
  /** True if the call may have taken effect although it failed. */
  readonly changesSomething: boolean;
  /** Milliseconds since the epoch, to interpret dates in answers. */
  readonly now: number;
  /** Origin of the credentials. */
  readonly source?: string;
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/** Returns the `DriverError` for an answer with an error status. */
export function errorOf(attempted: Attempted, answer: Answer): DriverError {
  return statusError(attempted, answer.status, statusIn(answer.text), answer.retryAfter);
}

/** Returns the `DriverError` for an event `ERROR` of a watch. */
export function watchErrorOf(operation: string, status: JsonObject, now: number): DriverError {
  const code = numberAt(status, 'code') ?? 500;
  return statusError({ operation, changesSomething: false, now }, code, status, undefined);
}

function statusError(
  attempted: Attempted,
  code: number,
  status: JsonObject,
  retryAfter: string | undefined,
): DriverError {
  const reason = stringAt(status, 'reason') ?? '';
  const detail = (stringAt(status, 'message') ?? '').replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL);
  const message = `${attempted.operation}: ${code} ${reason === '' ? '' : `${reason}: `}${detail}`;
  if (code === 401) {
    const why = `the cluster refuses the credentials of ${attempted.source ?? 'the context'}`;
    return new AuthError(`${message}; ${why}; replace them there, without a restart`);
  }
  if (code === 403) return refusal(status, reason, message, detail);
  if (code === 404 && reason === 'NotFound') return new NotFoundError(message);
  if (code === 409) return reason === 'AlreadyExists' ? new AlreadyExistsError(message) : new ConflictError(message);
  if (code === 410) return new ExpiredError(message, { outcome: 'not-applied' });
  const isUnsent = !attempted.changesSomething || WEBHOOK_AWAY.test(detail);
  const outcome = isUnsent ? 'not-applied' : 'unknown';
  const retryAfterMs = retryAfterOf(status, retryAfter, attempted.now);
  if (code === 429) return new ThrottledError(message, { retryAfterMs: retryAfterMs ?? DEFAULT_RETRY_AFTER_MS });
  // A proxy answers with 404 without a reason, which does not prove that the object is deleted.
  if (code >= 500 || code === 408 || code === 404) return new TransientError(message, { outcome, retryAfterMs });
  if (DENIED.test(detail)) return new RefusedError(message);
  if (CONFIGURATION.has(reason)) return new ConfigurationError(message);
  if (code >= 400) return new DriverError('unexpected', message, { outcome: 'not-applied' });
  return new DriverError('unexpected', `${message}; is this the address of a Kubernetes API?`);
}

function refusal(status: JsonObject, reason: string, message: string, detail: string): DriverError {
  if (STARTING.test(detail)) return new TransientError(message, { outcome: 'not-applied' });
  if (NOT_YET.test(detail)) return new ConflictError(message);
  if (QUOTA.test(detail)) return new QuotaError(message);
  const causes = listAt(objectAt(status, 'details') ?? {}, 'causes');
  if (causes.some((cause) => stringAt(cause, 'reason') === 'NamespaceTerminating') || /being terminated/.test(detail)) {
    return new TerminatingError(message);
  }
  const isAdmission = reason === 'Forbidden' && detail !== '' && !NO_PERMISSION.test(detail);
  if (DENIED.test(detail)) return new RefusedError(message);
  if (isAdmission) return new ConfigurationError(message);
  const text = `${message}; the account of the context needs a role that allows it`;
  return NO_PERMISSION.test(detail) ? new ForbiddenError(text) : new AuthError(text);
}

/** Returns the wait that the answer demands (ms). */
function retryAfterOf(status: JsonObject, header: string | undefined, now: number): number | undefined {
  const seconds = numberAt(objectAt(status, 'details') ?? {}, 'retryAfterSeconds') ?? 0;
  return retryAfterMsIn(seconds > 0 ? String(seconds) : header, now);
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
export function connectionErrorOf(attempted: Attempted, server: string, error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const { operation, changesSomething } = attempted;
  const network = networkCauseOf(error);
  const reason = network?.systemCode ?? (error instanceof Error ? error.message : String(error));
  if (network?.code === 'certificate') {
    const setting = '"certificate-authority" of the cluster in the kubeconfig file';
    const advice = certificateAdvice(network.systemCode, setting);
    return new CertificateError(`${operation}: the certificate of ${server} ${advice}`, { cause: error });
  }
  if (network?.outcome === 'not-applied') {
    const message = `${operation}: cannot connect to ${server} (${reason})`;
    return new TransientError(message, { cause: error, outcome: 'not-applied' });
  }
  return new TransientError(`${operation}: the connection to ${server} broke before the answer came (${reason})`, {
    cause: error,
    outcome: changesSomething ? 'unknown' : 'not-applied',
  });
}
