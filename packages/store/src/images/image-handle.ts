/** Builds and uploads whose locks this process holds, and the locks under which they are created. */

import { isZooKeeperError, type CallOptions, type HeldLock, type TransactionOp } from '@nodepool/zookeeper';
import { buildCodec, uploadCodec } from '../codec/image.js';
import { bytesOf, type Codec, type Source, type Stated } from '../codec/codec.js';
import type { ImageBuild, ImageBuildData, ImageBuildFailure, ImageUpload, ImageUploadData } from '@nodepool/core';
import { commit, isStale, throwIfLost } from '../commit/commit.js';
import { now, type StoreContext } from '../context.js';
import { LostOwnershipError } from '../errors.js';
import type { BuildRef, UploadPlace, UploadRef } from './image-refs.js';
import { inTurn, RecordHandle } from '../commit/record-handle.js';
import {
  buildPath,
  buildRequestPath,
  lastFailurePath,
  nameOf,
  placeOfImage,
  uploadPath,
  uploadsPath,
} from '../paths.js';
import { removeRecord } from '../commit/remove-record.js';
import { statOfNew } from '../commit/stat-of-new.js';
import { checkTransactionSize } from '../commit/transaction-size.js';
import { znodesBelow } from '../znodes-below.js';

type ReleaseBuildOptions = { readonly fulfilsRequest?: boolean } & CallOptions;

/** A build whose record this process may write. */
export class BuildHandle {
  constructor(
    protected readonly context: StoreContext,
    protected readonly record: RecordHandle<ImageBuildData, BuildRef>,
  ) {}

  /** The build as last read or written. */
  get build(): ImageBuild {
    return this.record.source.value;
  }

  get lock(): HeldLock {
    return this.record.lock;
  }

  /**
   * Writes the change, versioned and fenced, and sets `state_time` if `state` changes. Writes of one handle keep their
   * order.
   */
  update(change: Partial<ImageBuildData>, options?: CallOptions): Promise<void> {
    return write(this.context, this.record, change, false, options);
  }

  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void> {
    return recordFailure(this.context, this.lock, this.build.image, failure, options);
  }

  /** Releases the lock, with a last change in one transaction. `fulfilsRequest` also deletes the build request. */
  async release(change?: Partial<ImageBuildData>, options: ReleaseBuildOptions = {}): Promise<void> {
    const { fulfilsRequest, ...callOptions } = options;
    const request = buildRequestPath(this.build.image);
    if (fulfilsRequest === true && this.context.caches.has(request)) {
      try {
        const removal: TransactionOp = { type: 'delete', path: request };
        await write(this.context, this.record, change, true, callOptions, [removal]);
        return;
      } catch (error) {
        // Another process has already deleted the request.
        if (!isZooKeeperError(error, 'no-node')) throw error;
      }
    }
    await write(this.context, this.record, change, true, callOptions);
  }
}

/** A build whose own lock this process holds. */
export class LockedBuildHandle extends BuildHandle {
  /**
   * Deletes the record, its descendants and its lock in one transaction. Returns false, changing nothing and still
   * holding the lock, if an upload record exists or a lock is contended.
   */
  remove(options?: CallOptions): Promise<boolean> {
    return inTurn([this.record], async () => {
      const below = await this.emptyBelow(options);
      return below !== undefined && removeRecord(this.context, this.record, options, below);
    });
  }

  /** Returns the znodes below the build but its lock, children first; undefined with an upload or a contended lock. */
  private async emptyBelow(options?: CallOptions): Promise<readonly string[] | undefined> {
    const { path, lock } = this.record;
    const found = await znodesBelow(this.context.zooKeeper, path, options);
    const others = found.filter((other) => other !== lock.path && other !== lock.contender);
    const isInUse = others.some((other) => ['upload', 'contender'].includes(placeOfImage(other)?.kind ?? ''));
    return isInUse ? undefined : others.reverse();
  }
}

/** An upload whose record this process may write. */
export class UploadHandle {
  constructor(
    protected readonly context: StoreContext,
    protected readonly record: RecordHandle<ImageUploadData, UploadRef>,
  ) {}

  get upload(): ImageUpload {
    return this.record.source.value;
  }

  get lock(): HeldLock {
    return this.record.lock;
  }

  update(change: Partial<ImageUploadData>, options?: CallOptions): Promise<void> {
    return write(this.context, this.record, change, false, options);
  }

  release(change?: Partial<ImageUploadData>, options?: CallOptions): Promise<void> {
    return write(this.context, this.record, change, true, options);
  }
}

/** An upload whose own lock this process holds. */
export class LockedUploadHandle extends UploadHandle {
  /**
   * Deletes the record and its lock in one transaction. The parents stay until the build is deleted, so that the
   * sequence does not reuse an id. Returns false if the lock, which stays held, is contended.
   */
  remove(options?: CallOptions): Promise<boolean> {
    return inTurn([this.record], () => removeRecord(this.context, this.record, options));
  }
}

/** The right to build an image. `lock.lost` aborts when the lock is lost or released, here or by the handle. */
export class BuildingLock {
  constructor(
    private readonly context: StoreContext,
    readonly image: string,
    readonly lock: HeldLock,
  ) {}

  /** Creates the record of a build. `id`: 32 hex digits; default: a new one. */
  async create(build: ImageBuildData, options: { readonly id?: string } & CallOptions = {}): Promise<BuildHandle> {
    const { id = this.context.random.uuidHex(), ...callOptions } = options;
    const ref: BuildRef = { image: this.image, id };
    const path = buildPath(this.image, id);
    const record = await create(this.context, this.lock, buildCodec, build, {
      path,
      identityOf: () => ref,
      options: callOptions,
    });
    return new BuildHandle(this.context, record);
  }

  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void> {
    return recordFailure(this.context, this.lock, this.image, failure, options);
  }

  /** Releases the lock; idempotent. */
  release(): Promise<void> {
    return this.lock.release();
  }
}

/** The right to upload a build to a provider; see `BuildingLock`. */
export class UploadingLock {
  readonly image: string;
  readonly build: string;
  readonly provider: string;

  constructor(
    private readonly context: StoreContext,
    place: UploadPlace,
    readonly lock: HeldLock,
  ) {
    ({ image: this.image, build: this.build, provider: this.provider } = place);
  }

  /** Creates the record of an upload if the build still exists. */
  async create(upload: ImageUploadData, options?: CallOptions): Promise<UploadHandle> {
    const { image, build, provider } = this;
    const record = await create(this.context, this.lock, uploadCodec, upload, {
      path: `${uploadsPath(image, build, provider)}/`,
      sequential: true,
      identityOf: (path) => ({ image, build, provider, id: nameOf(path) }),
      options,
    });
    return new UploadHandle(this.context, record);
  }

  release(): Promise<void> {
    return this.lock.release();
  }
}

/** Returns the path of the record of an upload. */
export function pathOfUpload({ image, build, provider, id }: UploadRef): string {
  return uploadPath(image, build, provider, id);
}

function write<D extends Stated & { readonly state: string }, I extends object>(
  context: StoreContext,
  record: RecordHandle<D, I>,
  change: Partial<D> | undefined,
  release: boolean,
  options?: CallOptions,
  further?: readonly TransactionOp[],
): Promise<void> {
  const { zooKeeper, caches } = context;
  return inTurn([record], async () => {
    const step = change === undefined ? record.release() : record.change(change, now(context), release);
    return commit(zooKeeper, caches, [step], options, further);
  });
}

/** Replaces the last failed build of an image. Repeats a write whose answer was lost. */
async function recordFailure(
  { zooKeeper, caches }: StoreContext,
  lock: HeldLock,
  image: string,
  failure: ImageBuildFailure,
  options?: CallOptions,
): Promise<void> {
  const path = lastFailurePath(image);
  const data = bytesOf(JSON.stringify(failure));
  let exists = caches.has(path);
  for (;;) {
    throwIfLost({ path, lock });
    const write: TransactionOp = exists ? { type: 'set', path, data } : { type: 'create', path, data };
    try {
      await zooKeeper.transaction([lock.fence, write], options);
      return;
    } catch (error) {
      const isAboutWrite = isZooKeeperError(error) && error.operationIndex === 1;
      if (isAboutWrite && isZooKeeperError(error, 'node-exists')) exists = true;
      else if (isAboutWrite && isZooKeeperError(error, 'no-node') && exists) exists = false;
      else if (isStale(error) || isZooKeeperError(error, 'session-lost')) throw new LostOwnershipError(path, error);
      else if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
    }
  }
}

/** Creates a record, fenced by a lock. */
async function create<D extends Stated & { readonly state: string }, I extends object>(
  context: StoreContext,
  lock: HeldLock,
  codec: Codec<I, D>,
  value: D,
  where: {
    readonly path: string;
    readonly sequential?: boolean;
    readonly identityOf: (path: string) => I;
    readonly options: CallOptions | undefined;
  },
): Promise<RecordHandle<D, I>> {
  throwIfLost({ path: where.path, lock });
  const data = bytesOf(codec.create(value));
  const options = where.sequential === true ? { mode: 'persistent-sequential' as const } : {};
  const ops: TransactionOp[] = [lock.fence, { type: 'create', path: where.path, data, options }];
  checkTransactionSize(ops);
  try {
    const [, made] = await context.zooKeeper.transaction(ops, where.options);
    if (made?.type !== 'create')
      throw new TypeError(`${where.path}: the server did not return the path of the new record`);
    const { path } = made;
    context.caches.created(path, { data, stat: made.stat ?? statOfNew(context, data) });
    return new RecordHandle(path, lock, codec, sourceOf(codec, data, where.identityOf(path), value), 0);
  } catch (error) {
    if (isStale(error) || isZooKeeperError(error, 'session-lost')) throw new LostOwnershipError(where.path, error);
    throw error;
  }
}

/** Returns a new record as it would be read. */
function sourceOf<D extends Stated, I extends object>(
  codec: Codec<I, D>,
  data: Uint8Array,
  identity: I,
  value: D,
): Source<I & D> {
  const decoded = codec.decode(data, identity, value.state_time);
  if (!decoded.ok) throw new TypeError(`the created record is invalid: ${decoded.reason}`);
  return decoded.source;
}
