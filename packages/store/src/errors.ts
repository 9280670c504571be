/** The path of a record that cannot be read, and the reason. */
export interface CorruptRecord {
  readonly path: string;
  readonly reason: string;
  readonly version: number;
}

/** The record was changed or deleted, or its lock was lost: the writer is no longer the owner. */
export class LostOwnershipError extends Error {
  readonly code = 'lost-ownership';
  constructor(
    readonly path: string,
    cause?: unknown,
  ) {
    super(`${path} is no longer owned by this process: it was changed or deleted, or its lock was lost`, { cause });
    this.name = 'LostOwnershipError';
  }
}

/** The requestor has deleted the request. */
export class RequestGoneError extends Error {
  readonly code = 'request-gone';
  constructor(
    readonly requestId: string,
    cause?: unknown,
  ) {
    super(`request ${requestId} was deleted by its requestor`, { cause });
    this.name = 'RequestGoneError';
  }
}

/** The record exists but cannot be read, so no decision about it is possible. */
export class CorruptRecordError extends Error {
  readonly code = 'corrupt-record';
  constructor(
    readonly path: string,
    readonly reason: string,
  ) {
    super(`${path}: ${reason}. Repair or remove it by hand; until then it is ignored`);
    this.name = 'CorruptRecordError';
  }
}

/** The transaction is larger than a ZooKeeper server accepts. Nothing was changed. */
export class TransactionTooLargeError extends Error {
  readonly code = 'transaction-too-large';
  constructor(
    readonly bytes: number,
    readonly limit: number,
    readonly operations: number,
  ) {
    super(
      `a transaction of ${operations} operations needs ${bytes} bytes, but a ZooKeeper server accepts ${limit} ` +
        `(jute.maxbuffer): ask for fewer nodes in one request, or keep less data in their records`,
    );
    this.name = 'TransactionTooLargeError';
  }
}

/** A text that is not a valid id of an installation. */
export class InstallationIdError extends Error {
  readonly code = 'installation-id';
  constructor(readonly id: string) {
    super(
      `${JSON.stringify(id)} cannot be the id of an installation: expected 1 to 40 of a-z, 0-9 and -, with no - at either end`,
    );
    this.name = 'InstallationIdError';
  }
}

/** An export or import of image records failed; the message names the records. */
export class ImageDataError extends Error {
  readonly code = 'image-data';
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ImageDataError';
  }
}
