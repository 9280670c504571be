/** Acquires locks of images, builds and uploads, each in one transaction with its preconditions and changes. */

import { isZooKeeperError, type CallOptions, type HeldLock, type TransactionOp } from '@nodepool/zookeeper';
import { buildCodec, uploadCodec } from '../codec/image.js';
import type { Codec, Source, Stated } from '../codec/codec.js';
import type { ImageBuildData, ImageUploadData } from '@nodepool/core';
import { isStale } from '../commit/commit.js';
import { now, type StoreContext } from '../context.js';
import { settleEvents } from '../tables/settle-events.js';
import { BuildingLock, UploadingLock, LockedBuildHandle, LockedUploadHandle, pathOfUpload } from './image-handle.js';
import type { BuildRef, UploadPlace, UploadRef } from './image-refs.js';
import { RecordHandle, stamped } from '../commit/record-handle.js';
import { buildingLockPath, buildLockPath, buildPath, uploadingLockPath, uploadLockPath } from '../paths.js';
import { checkTransactionSize } from '../commit/transaction-size.js';

/** A record as cached. */
export interface ImageRecordEntry<T> {
  readonly source: Source<T>;
  readonly version: number;
  /** Time of the znode's creation, unix seconds. */
  readonly createdAt: number;
}

type StatedData = Stated & { readonly state: string };

/** Attempts to acquire a lock whose parents other processes create or delete at the same time. */
const MAX_ATTEMPTS = 5;

export class ImageLocks {
  constructor(private readonly context: StoreContext) {}

  async tryLockBuilding(image: string, options?: CallOptions): Promise<BuildingLock | undefined> {
    const lock = await this.tryLock(buildingLockPath(image), [], options);
    return lock === undefined ? undefined : new BuildingLock(this.context, image, lock);
  }

  /** Acquires the lock; `version` is that of the build's record. */
  async tryLockUploading(
    place: UploadPlace,
    version: number,
    options?: CallOptions,
  ): Promise<UploadingLock | undefined> {
    const build = buildPath(place.image, place.build);
    const path = uploadingLockPath(place.image, place.build, place.provider);
    const check: TransactionOp = { type: 'check', path: build, version };
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      // Created here because the lock recipe would also recreate a build that is deleted at this moment.
      const parents = await this.missingParents(build, path, options);
      try {
        const lock = await this.tryLock(path, [check, ...parents], options);
        return lock === undefined ? undefined : new UploadingLock(this.context, place, lock);
      } catch (error) {
        const index = isZooKeeperError(error) ? error.operationIndex : undefined;
        const isAboutParents = index !== undefined && index > 0 && index <= parents.length;
        if (!isAboutParents) {
          if (isStale(error)) return undefined;
          throw error;
        }
      }
    }
    return undefined;
  }

  async tryLockBuild(
    { image, id }: BuildRef,
    known: ImageRecordEntry<BuildRef & ImageBuildData>,
    options?: { readonly change?: Partial<ImageBuildData> } & CallOptions,
  ): Promise<LockedBuildHandle | undefined> {
    const paths = { record: buildPath(image, id), lock: buildLockPath(image, id) };
    const record = await this.tryLockRecord(paths, buildCodec, known, options);
    return record === undefined ? undefined : new LockedBuildHandle(this.context, record);
  }

  async tryLockUpload(
    ref: UploadRef,
    known: ImageRecordEntry<UploadRef & ImageUploadData>,
    options?: { readonly change?: Partial<ImageUploadData> } & CallOptions,
  ): Promise<LockedUploadHandle | undefined> {
    const { image, build, provider, id } = ref;
    const paths = { record: pathOfUpload(ref), lock: uploadLockPath(image, build, provider, id) };
    const record = await this.tryLockRecord(paths, uploadCodec, known, options);
    return record === undefined ? undefined : new LockedUploadHandle(this.context, record);
  }

  /** Locks a record if it is as cached, and changes it. */
  private async tryLockRecord<D extends StatedData, I extends object>(
    paths: { readonly record: string; readonly lock: string },
    codec: Codec<I, D>,
    known: ImageRecordEntry<I & D>,
    options: { readonly change?: Partial<D> } & CallOptions = {},
  ): Promise<RecordHandle<D, I> | undefined> {
    const { change, ...callOptions } = options;
    await settleEvents();
    const { source, version } = known;
    const next = change === undefined ? source : codec.change(source, stamped(source.value, change, now(this.context)));
    const data = next === source ? undefined : next.data;
    const path = paths.record;
    const write: TransactionOp =
      data === undefined ? { type: 'check', path, version } : { type: 'set', path, data, version };
    const expectation = this.context.caches.expect(data === undefined ? [] : [path]);
    try {
      const held = await this.acquire(paths.lock, [write], callOptions);
      const [written] = held?.results ?? [];
      if (held === undefined || written === undefined) {
        expectation.unknown();
        return undefined;
      }
      if (written.type !== 'set' || data === undefined) expectation.applied([]);
      else expectation.applied([{ path, node: { data, stat: written.stat } }]);
      const newVersion = written.type === 'set' ? written.stat.version : version;
      return new RecordHandle(path, held.lock, codec, next, newVersion);
    } catch (error) {
      expectation.unknown();
      if (isStale(error)) return undefined;
      throw error;
    }
  }

  private async tryLock(
    path: string,
    before: readonly TransactionOp[],
    options?: CallOptions,
  ): Promise<HeldLock | undefined> {
    await settleEvents();
    return (await this.acquire(path, before, options))?.lock;
  }

  private acquire(
    path: string,
    ops: readonly TransactionOp[],
    options?: CallOptions,
  ): ReturnType<StoreContext['locks']['tryAcquire']> {
    checkTransactionSize(ops, [{ path }]);
    const { caches, locks } = this.context;
    return locks.tryAcquire(path, { ...options, exists: caches.has(path), ops });
  }

  /** Returns operations that create the missing znodes between a build and a lock below it. */
  private async missingParents(build: string, lock: string, options?: CallOptions): Promise<readonly TransactionOp[]> {
    const { caches, zooKeeper } = this.context;
    const names = lock
      .slice(build.length + 1)
      .split('/')
      .slice(0, -1);
    const paths = names.map((_name, index) => `${build}/${names.slice(0, index + 1).join('/')}`);
    const ops: TransactionOp[] = [];
    for (const path of paths) {
      if (!caches.has(path) && (await zooKeeper.exists(path, options)) === undefined)
        ops.push({ type: 'create', path });
    }
    return ops;
  }
}
