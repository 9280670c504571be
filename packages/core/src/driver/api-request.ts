/** Requests to the API client, the credentials that they are sent with, and their failures. */

import type { Logger } from '../runtime/logger.js';
import type { ApiCall } from './api.js';
import type { Lane } from './api-lane.js';
import type { Call } from './call.js';
import type { Outcome } from './error-codes.js';
import type { DriverError } from './errors.js';
import type { HttpExchange } from './http-exchange.js';

/** Default time limit of a call (ms). */
const CALL_TIMEOUT_MS = 60_000;
/** Methods of calls that change nothing. */
const READING = /^(GET|HEAD|LIST|OPTIONS)$/i;

/** The kind of a call, for metrics. */
export type ApiOperation = Pick<ApiCall, 'service' | 'method' | 'operation'>;

/** A call that failed. */
export interface Attempted {
  /** Name of the call in messages, e.g. `compute: POST servers`. */
  readonly operation: string;
  /** True if the call may have taken effect although it failed. */
  readonly changesSomething: boolean;
  /** Time at the answer on the cloud's clock (ms since the epoch), for dates in the answer. */
  readonly now: number;
  /** The wait that the header `Retry-After` of the answer demands (ms). */
  readonly retryAfterMs?: number | undefined;
  /** Origin of the last message that was sent with `Attempt.http`, e.g. `https://api.example.org`. */
  readonly origin?: string | undefined;
}

/** Returns the `DriverError` for anything that a transport throws: an error answer, or a failure of the connection. */
export type ErrorOf = (error: unknown, attempted: Attempted) => DriverError;

/** A refused call, which had no effect. */
export interface Refusal {
  /** Its code is `auth` or `certificate`. */
  readonly error: DriverError;
  /** Status of the answer; undefined if there was none. */
  readonly status: number | undefined;
  readonly log: Logger;
}

/** The credentials of calls. A `TokenSource` is one. */
export interface ApiCredentials<C> {
  /** Resolves with the credentials of one call. Ends when the call's signal aborts, and at its deadline. */
  get(call: Call): Promise<C>;
  /**
   * Called after the cloud has refused a call. Returns true if `get` now returns other credentials, e.g. because their
   * file has changed: the call is then repeated, once.
   */
  renew(used: C, refusal: Refusal): boolean | Promise<boolean>;
}

/** For clouds without credentials, or whose SDK keeps them to itself. */
export const NO_CREDENTIALS: ApiCredentials<undefined> = {
  get: () => Promise.resolve(undefined),
  renew: () => false,
};

export interface ApiRequest<T> extends ApiOperation {
  /** Name of the call in messages. Default: e.g. `compute: POST servers`. */
  readonly name?: string;
  /** Time limit (ms) in addition to the deadline of the call. Default: one minute. */
  readonly timeoutMs?: number;
  /** False if the call changes nothing in the cloud. Default: true, unless the method is GET, HEAD, LIST or OPTIONS. */
  readonly changesSomething?: boolean;
  /** Default: a lane with the client's rate. `none`: the call starts at once, e.g. a transfer of data. */
  readonly lane?: Lane | 'none';
  /**
   * Returns the reason if the result is not an answer of the vendor, but e.g. the page of a proxy; undefined if it is.
   * The call then fails with `TransientError`. TypeScript needs the type of the parameter.
   */
  readonly foreign?: (result: T) => string | undefined;
}

/** A call in progress. */
export interface Attempt<C = undefined> {
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly credentials: C;
  /** Sends HTTP messages: follows redirects, and remembers the answer for messages and for dates. */
  readonly http: HttpExchange;
}

/** Sends one call. Any error that it throws is converted by `errorOf`; a `DriverError` remains as it is. */
export type Transport<T, C> = (attempt: Attempt<C>) => Promise<T>;

/** Returns the request with its defaults. `errorOf` and `usual` are those of the client. */
export function planned<T>(request: ApiRequest<T>, errorOf: ErrorOf, usual: Lane): PlannedRequest<T> {
  const { service, method, operation, timeoutMs = CALL_TIMEOUT_MS, lane = usual, foreign } = request;
  const { name = nameOfCall(request), changesSomething = !READING.test(method) } = request;
  return { service, method, operation, name, timeoutMs, lane, foreign, changesSomething, errorOf };
}

/** A request with its defaults. */
export interface PlannedRequest<T> extends ApiOperation {
  readonly name: string;
  readonly timeoutMs: number;
  readonly changesSomething: boolean;
  readonly lane: Lane | 'none';
  readonly foreign: ((result: T) => string | undefined) | undefined;
  readonly errorOf: ErrorOf;
  /** Returns false for a result that needed no remote call. */
  readonly wasMade?: (result: T) => boolean;
}

/** Returns the name of a call in messages, e.g. `compute: POST servers`. */
export function nameOfCall({ service, method, operation }: ApiOperation): string {
  return `${service}: ${method} ${operation}`;
}

/** Returns the outcome of a call without an answer of the vendor. */
export function outcomeOf({ changesSomething }: Pick<PlannedRequest<never>, 'changesSomething'>): Outcome {
  return changesSomething ? 'unknown' : 'not-applied';
}
