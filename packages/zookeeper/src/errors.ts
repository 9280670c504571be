/** Errors of the client. Prefer `code` to `instanceof`, which fails across two copies of this package. */

export type ZooKeeperErrorCode =
  | 'no-node'
  | 'node-exists'
  | 'bad-version'
  | 'not-empty'
  | 'no-children-for-ephemerals'
  | 'no-auth'
  | 'auth-failed'
  | 'invalid-acl'
  | 'not-read-only'
  | 'unimplemented'
  | 'no-watcher'
  | 'quota-exceeded'
  | 'throttled'
  | 'overloaded'
  | 'session-moved'
  | 'connection-lost'
  | 'outcome-unknown'
  | 'session-lost'
  | 'closed'
  | 'timeout'
  | 'aborted'
  | 'invalid-argument'
  | 'protocol'
  | 'server-error';

export interface ZooKeeperErrorDetails {
  /** Name of the operation, e.g. `create`. */
  readonly operation?: string | undefined;
  readonly path?: string | undefined;
  /** The server's numeric code (`KeeperException.Code`), if the server answered. */
  readonly serverCode?: number | undefined;
  /** Index of the failed operation in a transaction. */
  readonly operationIndex?: number | undefined;
  readonly cause?: unknown;
}

/** Base of all errors of this package. */
export class ZooKeeperError extends Error {
  readonly code: ZooKeeperErrorCode;
  readonly operation: string | undefined;
  readonly path: string | undefined;
  readonly serverCode: number | undefined;
  readonly operationIndex: number | undefined;

  constructor(code: ZooKeeperErrorCode, message: string, details: ZooKeeperErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.operation = details.operation;
    this.path = details.path;
    this.serverCode = details.serverCode;
    this.operationIndex = details.operationIndex;
  }

  /** Returns `unknown` if a write was sent and its answer was lost, else `not-applied`. */
  get outcome(): 'not-applied' | 'unknown' {
    return this.code === 'outcome-unknown' ? 'unknown' : 'not-applied';
  }
}

export class NoNodeError extends ZooKeeperError {}
export class NodeExistsError extends ZooKeeperError {}
export class BadVersionError extends ZooKeeperError {}
export class NotEmptyError extends ZooKeeperError {}
/** The call took no effect: it was never sent, or it only reads. */
export class ConnectionLostError extends ZooKeeperError {}
/** A write was sent and its answer was lost: it may have been applied. */
export class OutcomeUnknownError extends ZooKeeperError {}
/** The session is lost, and its ephemeral znodes and locks with it. */
export class SessionLostError extends ZooKeeperError {}
export class ClosedError extends ZooKeeperError {}
/** The deadline passed before the call was sent, or while a read waited for its answer. */
export class TimeoutError extends ZooKeeperError {}
/** The call was not sent, because unanswered calls reached the client's limits. */
export class OverloadedError extends ZooKeeperError {}
export class InvalidArgumentError extends ZooKeeperError {}

/** Returns true if `error` is one of this package's errors, with `code` if given; also of another copy of it. */
export function isZooKeeperError(error: unknown, code?: ZooKeeperErrorCode): error is ZooKeeperError {
  return (
    error instanceof Error &&
    'code' in error &&
    'outcome' in error &&
    'serverCode' in error &&
    (code === undefined || error.code === code)
  );
}
