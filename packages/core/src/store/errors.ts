/** Errors of the store. */

/** The record was changed or removed, or its lock is not ours any more: the writer is no longer the owner. */
export class LostOwnershipError extends Error {
  readonly code = 'lost-ownership';
  constructor(
    readonly path: string,
    cause?: unknown,
  ) {
    super(`${path} is no longer ours: it was changed, removed or its lock was lost`, { cause });
    this.name = 'LostOwnershipError';
  }
}

/** The requestor has withdrawn the request. */
export class RequestGoneError extends Error {
  readonly code = 'request-gone';
  constructor(
    readonly requestId: string,
    cause?: unknown,
  ) {
    super(`request ${requestId} was withdrawn`, { cause });
    this.name = 'RequestGoneError';
  }
}
