/**
 * Image builds and uploads in the store. A builder holds the lock of a build or upload job and gets the handle of the
 * record that it creates under it; cleanup locks the record itself. The errors are those of `api.ts`.
 */

import type { CallOptions, HeldLock } from '@nodepool/zookeeper';
import type { ImageBuild, ImageBuildData, ImageBuildFailure, ImageUpload, ImageUploadData } from '@nodepool/core';
import type { CorruptRecord } from './errors.js';

/** The identity of a build, part of every `ImageBuild`. */
export type BuildRef = Pick<ImageBuild, 'image' | 'id'>;
/** The identity of an upload, part of every `ImageUpload`. */
export type UploadRef = Pick<ImageUpload, 'image' | 'build' | 'provider' | 'id'>;
/** A build and a provider to upload it to, part of every `ImageUpload`. */
export type UploadPlace = Pick<ImageUpload, 'image' | 'build' | 'provider'>;

export interface ImageStore {
  /**
   * Resolves once the cache has everything that was written before the call. Answers come in order: the first read is
   * answered after the events of those writes, the second after the reads that the cache issues for these events.
   */
  syncCache(options?: CallOptions): Promise<void>;
  /** Returns the builds of an image, oldest first. */
  builds(image: string): readonly ImageBuild[];
  build(ref: BuildRef): ImageBuild | undefined;
  /** Returns the time at which the build's record was created, unix seconds; undefined if there is no such build. */
  buildBegan(ref: BuildRef): number | undefined;
  /** Returns uploads by image, oldest first. */
  uploads(query: {
    readonly image?: string;
    readonly build?: string;
    readonly provider?: string;
  }): Iterable<ImageUpload>;
  upload(ref: UploadRef): ImageUpload | undefined;
  images(): Iterable<string>;
  /** Returns the usable upload with the newest `state_time`, from which nodes are launched. */
  newestReadyUpload(image: string, provider: string): ImageUpload | undefined;
  paused(image: string): boolean;
  buildRequested(image: string): boolean;
  /** Returns the time of the pending build request, unix seconds; undefined if there is none. */
  buildRequestedAt(image: string): number | undefined;
  /**
   * Returns the last failed build of the image. A successful build does not delete it: the image is failing only if no
   * `ready` build is newer.
   */
  lastBuildFailure(image: string): ImageBuildFailure | undefined;
  /** Returns true if the lock for building the image is contended. */
  isBuilding(image: string): boolean;
  /** Returns true if the lock for uploading the build to the provider is contended. */
  isUploading(place: UploadPlace): boolean;
  /** Returns true if the lock for cleaning up the build is contended. */
  isBuildLocked(build: BuildRef): boolean;
  /** Returns true if the lock for deleting the upload is contended. */
  isUploadLocked(upload: UploadRef): boolean;
  corrupt(): Iterable<CorruptRecord>;
  /** Calls `listener` after every change of the image's records, marks and locks. */
  onChange(listener: (image: string) => void): () => void;

  /**
   * Deletes records of builds that this call and the previous one found empty, unchanged, and without uploads and
   * contended locks. Contenders for the locks of deleted builds leave such records behind.
   */
  removeEmptyBuilds(options?: CallOptions): Promise<void>;
  /**
   * Deletes the znodes of an image without builds, its marks included, in one transaction. Returns false, changing
   * nothing, if the image has a build or its lock is contended.
   */
  removeImage(image: string, options?: CallOptions): Promise<boolean>;

  /**
   * Deletes the znode of a provider below a build, and what is below it, in one transaction. Returns false, changing
   * nothing, if it contains an upload or a contended lock.
   */
  removeProvider(place: UploadPlace, options?: CallOptions): Promise<boolean>;
  /** Requests a build. An existing request stays unchanged, unless `renew` replaces it by a new one. */
  requestBuild(image: string, options?: CallOptions & { readonly renew?: boolean }): Promise<void>;
  pause(image: string, options?: CallOptions): Promise<void>;
  unpause(image: string, options?: CallOptions): Promise<void>;

  /** Acquires the lock for building the image. Resolves with undefined if it is contended. */
  tryLockBuilding(image: string, options?: CallOptions): Promise<BuildingLock | undefined>;
  /**
   * Acquires the lock for uploading a build to a provider. Resolves with undefined if it is contended, or if the build
   * differs from the cached one.
   */
  tryLockUploading(place: UploadPlace, options?: CallOptions): Promise<UploadingLock | undefined>;
  /**
   * Acquires the lock for cleaning up a build and applies `change`, if given, in one transaction. Resolves with
   * undefined if the lock is taken, or if the record was changed or deleted.
   */
  tryLockBuild(
    build: BuildRef,
    options?: { readonly change?: Partial<ImageBuildData> } & CallOptions,
  ): Promise<LockedBuild | undefined>;
  /** Does the same as `tryLockBuild` for an upload. */
  tryLockUpload(
    upload: UploadRef,
    options?: { readonly change?: Partial<ImageUploadData> } & CallOptions,
  ): Promise<LockedUpload | undefined>;
}

/**
 * The right to build an image. `lock.lost` aborts when the lock is lost, or released through this object or the handle.
 */
export interface BuildingLock {
  readonly image: string;
  readonly lock: HeldLock;
  /** Creates the record of a build. `id`: 32 hex digits; default: a new one. */
  create(build: ImageBuildData, options?: { readonly id?: string } & CallOptions): Promise<BuildHandle>;
  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void>;
  /** Releases the lock; idempotent. */
  release(): Promise<void>;
}

/** The right to upload a build to a provider; see `BuildingLock`. */
export interface UploadingLock extends UploadPlace {
  readonly lock: HeldLock;
  /** Creates the record of an upload if the build still exists. */
  create(upload: ImageUploadData, options?: CallOptions): Promise<UploadHandle>;
  release(): Promise<void>;
}

/** A build whose record this process may write. */
export interface BuildHandle {
  /** The build as last read or written. */
  readonly build: ImageBuild;
  readonly lock: HeldLock;
  /**
   * Writes the change, versioned and fenced, and sets `state_time` if `state` changes. Writes of one handle keep their
   * order.
   */
  update(change: Partial<ImageBuildData>, options?: CallOptions): Promise<void>;
  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void>;
  /**
   * Releases the lock, with a last change in the same transaction. `fulfilsRequest` also deletes the build request of
   * the image.
   */
  release(
    change?: Partial<ImageBuildData>,
    options?: { readonly fulfilsRequest?: boolean } & CallOptions,
  ): Promise<void>;
}

/** An upload whose record this process may write. */
export interface UploadHandle {
  readonly upload: ImageUpload;
  readonly lock: HeldLock;
  update(change: Partial<ImageUploadData>, options?: CallOptions): Promise<void>;
  release(change?: Partial<ImageUploadData>, options?: CallOptions): Promise<void>;
}

/** A build whose own lock this process holds. */
export interface LockedBuild extends BuildHandle {
  /**
   * Deletes the record, its descendants and its lock in one transaction. Returns false, changing nothing and still
   * holding the lock, if an upload record exists or a lock is contended.
   */
  remove(options?: CallOptions): Promise<boolean>;
}

/** An upload whose own lock this process holds. */
export interface LockedUpload extends UploadHandle {
  /**
   * Deletes the record and its lock in one transaction. The parents stay until the build is deleted, so that the
   * sequence does not reuse an id. Returns false if the lock, which stays held, is contended.
   */
  remove(options?: CallOptions): Promise<boolean>;
}
