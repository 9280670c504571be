/**
 * Errors of drivers. What each means for retrying, logging and metrics is said by one table (`ERROR_POLICIES`), not by
 * the places that catch them. `instanceof` fails across two copies of this package; `isDriverError` does not.
 */

import { inspect } from 'node:util';
import { isError } from '../runtime/error-text.js';
import type { DriverErrorCode, Outcome } from './error-codes.js';
import { networkFailureOf } from './network-errors.js';

/** Characters of a thrown value, other than an error, that its message contains. */
const MAX_THROWN = 500;

export interface DriverErrorOptions {
  /** Default: what is usual for the code. */
  readonly outcome?: Outcome;
  readonly cause?: unknown;
  /** Milliseconds after which the cloud wants to be asked again. */
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

/** `<result>` of `nodepool.launch.<result>` for failures: all names that the existing Nodepool sends. */
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

/** What an error means to whoever called the driver. */
export interface ErrorPolicy {
  /** Outcome unless the error says otherwise. */
  readonly outcome: Outcome;
  /**
   * The reaction of a launch: retry at once, with back-off, once more with back-off to confirm the failure, when there is room,
   * or never.
   */
  readonly retry: 'at-once' | 'back-off' | 'confirm' | 'when-room' | 'never';
  /** True if the failure uses up one of `launch-retries`. */
  readonly countsAsAttempt: boolean;
  /** True if the cloud is at fault, not the node: the request waits for the cloud instead of being declined. */
  readonly isOutage: boolean;
  /** True if a call that failed without effect can be repeated as it is, by whatever made it. */
  readonly mayPass: boolean;
  /** True if a confirmed failure takes the label out of service, with the error as the reason, until a later probe. */
  readonly disablesLabel: boolean;
  /** The result that a failed launch attempt is counted as; undefined if it is not counted. */
  readonly metric: LaunchErrorResult | undefined;
  readonly log: 'info' | 'warn' | 'error';
}

function policy(
  outcome: Outcome,
  retry: ErrorPolicy['retry'],
  metric: LaunchErrorResult | undefined,
  log: ErrorPolicy['log'],
): ErrorPolicy {
  return {
    outcome,
    retry,
    countsAsAttempt: retry === 'at-once' || retry === 'back-off',
    isOutage: false,
    mayPass: false,
    disablesLabel: false,
    metric,
    log,
  };
}

const OUTAGE = { countsAsAttempt: false, isOutage: true, mayPass: true } as const;

export const ERROR_POLICIES: Readonly<Record<DriverErrorCode, ErrorPolicy>> = {
  quota: policy('not-applied', 'when-room', 'error.quota', 'info'),
  capacity: policy('not-applied', 'back-off', 'error.capacity', 'warn'),
  throttled: { ...policy('not-applied', 'back-off', 'error.unknown', 'info'), ...OUTAGE },
  'not-found': policy('not-applied', 'at-once', 'error.unknown', 'warn'),
  conflict: { ...policy('not-applied', 'back-off', 'error.unknown', 'warn'), mayPass: true },
  configuration: {
    ...policy('not-applied', 'confirm', 'error.nodepool', 'error'),
    disablesLabel: true,
  },
  auth: policy('not-applied', 'back-off', 'error.unknown', 'error'),
  transient: { ...policy('unknown', 'back-off', 'error.unknown', 'warn'), ...OUTAGE },
  timeout: { ...policy('unknown', 'at-once', 'error.servercreatetimeout', 'warn'), mayPass: true },
  'instance-failed': policy('applied', 'at-once', 'error.status', 'warn'),
  keyscan: policy('applied', 'at-once', 'error.keyscan', 'warn'),
  aborted: { ...policy('unknown', 'never', undefined, 'info'), countsAsAttempt: false },
  unexpected: policy('unknown', 'back-off', 'error.unknown', 'error'),
};

/** More than the account may have. Never a failure of the request by itself. */
export class QuotaError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('quota', message, options);
  }
}

/** The cloud has no room for it at the moment, in this zone or at all. */
export class CapacityError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('capacity', message, options);
  }
}

/** Too many calls; see `retryAfterMs`. */
export class ThrottledError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('throttled', message, options);
  }
}

/** What the call is about does not exist. A success for a deletion. */
export class NotFoundError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('not-found', message, options);
  }
}

/** The resource is in a state in which this cannot be done now. */
export class ConflictError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('conflict', message, options);
  }
}

/** The cloud refuses for good what the configuration asks for: unknown flavor, image, network. */
export class ConfigurationError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('configuration', message, options);
  }
}

/** Credentials are refused. */
export class AuthError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('auth', message, options);
  }
}

/** A failure that may well be over at the next try: 5xx, connection cut. */
export class TransientError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('transient', message, options);
  }
}

/** No answer in time. */
export class TimeoutError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('timeout', message, options);
  }
}

/** The instance exists and will never be usable. */
export class InstanceFailedError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('instance-failed', message, options);
  }
}

/** Nobody can log into the instance, or its host keys could not be gathered. */
export class KeyScanError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('keyscan', message, options);
  }
}

/** The caller does not want the result any more. */
export class AbortedError extends DriverError {
  constructor(message: string, options?: DriverErrorOptions) {
    super('aborted', message, options);
  }
}

/** Narrows an unknown error, also one that comes from another copy of this package. */
export function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && 'code' in error && 'outcome' in error && String(error.code) in ERROR_POLICIES;
}

/**
 * Returns whatever a driver threw as a `DriverError`. Errors of `fetch` and of connections become `transient`, `timeout` or
 * `configuration`; all others are `unexpected`.
 */
export function toDriverError(error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const network = networkFailureOf(error);
  if (network !== undefined) {
    const { code, message, outcome } = network;
    const options = { outcome, cause: error };
    if (code === 'timeout') return new TimeoutError(message, options);
    return code === 'transient' ? new TransientError(message, options) : new ConfigurationError(message, options);
  }
  return new DriverError('unexpected', isError(error) ? error.message : describeThrown(error), { cause: error });
}

function describeThrown(thrown: unknown): string {
  const value = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 1, breakLength: Infinity });
  if (thrown === null || thrown === undefined) return `the driver threw ${value} instead of an error`;
  const article = typeof thrown === 'object' ? 'an' : 'a';
  return `the driver threw ${article} ${typeof thrown} instead of an error: ${value.slice(0, MAX_THROWN)}`;
}
