/**
 * Errors of drivers. One table (`ERROR_POLICIES`) defines retrying, logging and metrics for each kind of error, so that
 * callers need no rules of their own. `instanceof` fails across two copies of this package; `isDriverError` does not.
 */

import { inspect } from 'node:util';
import { isError } from '../runtime/error-text.js';
import type { DriverErrorCode, Outcome } from './error-codes.js';
import { networkFailureOf } from './network-errors.js';

/** Maximum number of characters that the message contains of a thrown value that is not an error. */
const MAX_THROWN = 500;

export interface DriverErrorOptions {
  /** Default: the outcome in `ERROR_POLICIES`. */
  readonly outcome?: Outcome;
  readonly cause?: unknown;
  /** Milliseconds that the cloud asks callers to wait before the next call. */
  readonly retryAfterMs?: number | undefined;
}

export class DriverError extends Error {
  readonly code: DriverErrorCode;
  readonly outcome: Outcome;
  readonly retryAfterMs: number | undefined;

  constructor(code: DriverErrorCode, message: string, options: DriverErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.outcome = options.outcome ?? ERROR_POLICIES[code].outcome;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** `<result>` of `nodepool.launch.<result>` for failures. Includes every name that the Python Nodepool sends. */
export type LaunchErrorResult =
  | 'error.capacity'
  | 'error.imagetimeout'
  | 'error.ipadd'
  | 'error.keyscan'
  | 'error.network'
  | 'error.nodepool'
  | 'error.quota'
  | 'error.servercreatetimeout'
  | 'error.serverdeletetimeout'
  | 'error.ssh'
  | 'error.status'
  | 'error.unknown'
  | 'error.zksession';

/**
 * The part that a failed launch shows to be faulty. `node`: this instance; the failure counts against `launch-retries`.
 * `offer`: the label in this zone with this machine type. `provider`: the whole provider. `none`: no part.
 */
export type FaultScope = 'node' | 'offer' | 'provider' | 'none';

/** Reaction to an error of a driver. */
export interface ErrorPolicy {
  /** Outcome, unless the error specifies another one. */
  readonly outcome: Outcome;
  /** The faulty part. Only faults of nodes count against `launch-retries`. */
  readonly scope: FaultScope;
  /** When to attempt the launch with the same offer again. `confirm`: once, after back-off, to confirm the failure. */
  readonly retry: 'at-once' | 'back-off' | 'confirm' | 'never';
  /** True if the failure may be temporary, so that a call without effect can be repeated. */
  readonly mayPass: boolean;
  /** Result under which a failed launch attempt is counted; undefined if it is not counted. */
  readonly metric: LaunchErrorResult | undefined;
  readonly log: 'info' | 'warn' | 'error';
}

function policy(
  outcome: Outcome,
  scope: FaultScope,
  retry: ErrorPolicy['retry'],
  metric: LaunchErrorResult | undefined,
  log: ErrorPolicy['log'],
): ErrorPolicy {
  return { outcome, scope, retry, mayPass: false, metric, log };
}

const PASSES = { mayPass: true } as const;

export const ERROR_POLICIES: Readonly<Record<DriverErrorCode, ErrorPolicy>> = {
  quota: policy('not-applied', 'offer', 'never', 'error.quota', 'info'),
  capacity: policy('not-applied', 'offer', 'never', 'error.capacity', 'warn'),
  throttled: { ...policy('not-applied', 'provider', 'back-off', 'error.unknown', 'info'), ...PASSES },
  'not-found': policy('not-applied', 'node', 'at-once', 'error.unknown', 'warn'),
  conflict: { ...policy('not-applied', 'node', 'back-off', 'error.unknown', 'warn'), ...PASSES },
  configuration: policy('not-applied', 'offer', 'confirm', 'error.nodepool', 'error'),
  refused: { ...policy('not-applied', 'offer', 'back-off', 'error.nodepool', 'warn'), ...PASSES },
  auth: policy('not-applied', 'provider', 'back-off', 'error.unknown', 'error'),
  certificate: { ...policy('not-applied', 'provider', 'back-off', 'error.unknown', 'error'), ...PASSES },
  transient: { ...policy('unknown', 'provider', 'back-off', 'error.unknown', 'warn'), ...PASSES },
  // The instance exists; without one, the API did not answer in time and the provider is faulty.
  timeout: { ...policy('unknown', 'node', 'at-once', 'error.servercreatetimeout', 'warn'), ...PASSES },
  'instance-failed': policy('applied', 'node', 'at-once', 'error.status', 'warn'),
  keyscan: policy('applied', 'node', 'at-once', 'error.keyscan', 'warn'),
  aborted: policy('unknown', 'none', 'never', undefined, 'info'),
  unexpected: policy('unknown', 'node', 'back-off', 'error.unknown', 'error'),
};

type DriverErrorClass = new (message: string, options?: DriverErrorOptions) => DriverError;

/** Returns the base of a class of errors with a code of its own. */
function errorOf(code: DriverErrorCode): DriverErrorClass {
  return class extends DriverError {
    constructor(message: string, options?: DriverErrorOptions) {
      super(code, message, options);
    }
  };
}

/** The account's quota is exceeded. Does not fail the request by itself. */
export class QuotaError extends errorOf('quota') {}

/** The cloud has no capacity at the moment, in this zone or in all zones. */
export class CapacityError extends errorOf('capacity') {}

/** The cloud rejects a call because of too many calls; see `retryAfterMs`. */
export class ThrottledError extends errorOf('throttled') {}

/** The object of the call does not exist. Counts as success for a deletion. */
export class NotFoundError extends errorOf('not-found') {}

/** The state of the resource does not allow the operation at the moment. */
export class ConflictError extends errorOf('conflict') {}

/**
 * The cloud rejects the configuration, which only an operator can correct, e.g. an invalid name of an image. A second
 * attempt confirms it; then the pool declines requests of the label.
 */
export class ConfigurationError extends errorOf('configuration') {}

/**
 * The cloud refuses the label at the moment, e.g. because an image is still being replicated. The pool declines
 * requests only if the refusal persists for minutes.
 */
export class RefusedError extends errorOf('refused') {}

/** The certificate of the cloud is not accepted: it has expired, is not trusted, or the clock of this host is wrong. */
export class CertificateError extends errorOf('certificate') {}

/** The cloud rejects the credentials. */
export class AuthError extends errorOf('auth') {}

/** A temporary failure that a retry may resolve: a 5xx status, a lost connection. */
export class TransientError extends errorOf('transient') {}

/** No response arrived in time. */
export class TimeoutError extends errorOf('timeout') {}

/** The instance exists but can never be used. */
export class InstanceFailedError extends errorOf('instance-failed') {}

/** The login of the instance does not respond, or its host keys could not be read. */
export class KeyScanError extends errorOf('keyscan') {}

/** The caller no longer needs the result. */
export class AbortedError extends errorOf('aborted') {}

/** The classes of errors with codes of their own. */
const CLASSES: Partial<Record<DriverErrorCode, DriverErrorClass>> = {
  quota: QuotaError,
  capacity: CapacityError,
  throttled: ThrottledError,
  'not-found': NotFoundError,
  conflict: ConflictError,
  configuration: ConfigurationError,
  refused: RefusedError,
  certificate: CertificateError,
  auth: AuthError,
  transient: TransientError,
  timeout: TimeoutError,
  'instance-failed': InstanceFailedError,
  keyscan: KeyScanError,
  aborted: AbortedError,
};

/** Returns a new error of the class of its code. */
export function driverError(code: DriverErrorCode, message: string, options?: DriverErrorOptions): DriverError {
  const Kind = CLASSES[code];
  return Kind === undefined ? new DriverError(code, message, options) : new Kind(message, options);
}

/** Returns true if the error is a `DriverError`, including one of another copy of this package. */
export function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && 'code' in error && 'outcome' in error && String(error.code) in ERROR_POLICIES;
}

/**
 * Converts any thrown value to a `DriverError`. Errors of `fetch` and of connections become `transient`, `timeout` or
 * `certificate`; all other values become `unexpected`.
 */
export function toDriverError(error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const network = networkFailureOf(error);
  if (network !== undefined) {
    const { code, message, outcome } = network;
    const options = { outcome, cause: error };
    if (code === 'timeout') return new TimeoutError(message, options);
    return code === 'transient' ? new TransientError(message, options) : new CertificateError(message, options);
  }
  return new DriverError('unexpected', isError(error) ? error.message : describeThrown(error), { cause: error });
}

/** Returns the same failure with another outcome. */
export function withOutcome(error: DriverError, outcome: Outcome): DriverError {
  const { code, message, retryAfterMs } = error;
  return error.outcome === outcome ? error : new DriverError(code, message, { outcome, retryAfterMs, cause: error });
}

function describeThrown(thrown: unknown): string {
  const value = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 1, breakLength: Infinity });
  if (thrown === null || thrown === undefined) return `the driver threw ${value} instead of an error`;
  const article = typeof thrown === 'object' ? 'an' : 'a';
  return `the driver threw ${article} ${typeof thrown} instead of an error: ${value.slice(0, MAX_THROWN)}`;
}
