/**
 * Errors of the client. `instanceof` fails across two copies of this package; use `code`, which is stable.
 */

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
  /** Operation, e.g. `create`. */
  readonly operation?: string | undefined;
  readonly path?: string | undefined;
  /** The server's numeric code, when it gave one (`KeeperException.Code`). */
  readonly serverCode?: number | undefined;
  /** Index of the failed operation in a transaction. */
  readonly operationIndex?: number | undefined;
  readonly cause?: unknown;
}

/** Base of all errors of this package. `applied` says whether a write took effect. */
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

  /** `unknown` only when a write was sent and its answer never came. */
  get outcome(): 'not-applied' | 'unknown' {
    return this.code === 'outcome-unknown' ? 'unknown' : 'not-applied';
  }
}

/** A definition per code that callers are likely to catch by class. */
export class NoNodeError extends ZooKeeperError {}
export class NodeExistsError extends ZooKeeperError {}
export class BadVersionError extends ZooKeeperError {}
export class NotEmptyError extends ZooKeeperError {}
/** The call took no effect: it was never sent, or it only reads. */
export class ConnectionLostError extends ZooKeeperError {}
/** A write was sent and its answer was lost: it may or may not have taken effect. */
export class OutcomeUnknownError extends ZooKeeperError {}
/** The session that the call was bound to is gone, and its ephemerals and locks with it. */
export class SessionLostError extends ZooKeeperError {}
export class ClosedError extends ZooKeeperError {}
/** The deadline passed before the call was sent, or while a read waited for its answer. */
export class TimeoutError extends ZooKeeperError {}
/** More calls wait for their answers than the client's options allow. It was not sent. */
export class OverloadedError extends ZooKeeperError {}
export class InvalidArgumentError extends ZooKeeperError {}

/** Narrows an unknown error to one of this package's, also when it comes from another copy of it. */
export function isZooKeeperError(error: unknown, code?: ZooKeeperErrorCode): error is ZooKeeperError {
  return (
    error instanceof Error &&
    'code' in error &&
    'outcome' in error &&
    'serverCode' in error &&
    (code === undefined || error.code === code)
  );
}
