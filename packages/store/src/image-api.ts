/**
 * Image builds and uploads as the store knows and writes them. Whoever builds or uploads holds the lock of that work and
 * gets the handle of the record that it makes from it; whoever cleans up locks the record itself. What `api.ts` says of
 * errors holds here, too.
 */

import type { CallOptions, HeldLock } from '@nodepool/zookeeper';
import type { ImageBuild, ImageBuildData, ImageBuildFailure, ImageUpload, ImageUploadData } from '@nodepool/core';
import type { CorruptRecord } from './errors.js';

/** What names a build; every `ImageBuild` does. */
export type BuildRef = Pick<ImageBuild, 'image' | 'id'>;
/** What names an upload; every `ImageUpload` does. */
export type UploadRef = Pick<ImageUpload, 'image' | 'build' | 'provider' | 'id'>;
/** A build, and a provider to upload it to; every `ImageUpload` names one. */
export type UploadPlace = Pick<ImageUpload, 'image' | 'build' | 'provider'>;

export interface ImageStore {
  /**
   * Resolves once the cache has everything that was written before the call. Answers come in order: the first read is
   * answered after the events of those writes, the second after the reads that the cache makes for these events.
   */
  syncCache(options?: CallOptions): Promise<void>;
  /** Oldest first. */
  builds(image: string): readonly ImageBuild[];
  /** Builds of all images that were made by a builder (see `ImageBuildData.builder_id`). */
  buildsOfBuilder(builderId: string): Iterable<ImageBuild>;
  build(ref: BuildRef): ImageBuild | undefined;
  /** By image, and oldest first. */
  uploads(query: {
    readonly image?: string;
    readonly build?: string;
    readonly provider?: string;
  }): Iterable<ImageUpload>;
  upload(ref: UploadRef): ImageUpload | undefined;
  images(): Iterable<string>;
  /** The usable upload with the newest `state_time`; nodes use that. */
  newestReadyUpload(image: string, provider: string): ImageUpload | undefined;
  paused(image: string): boolean;
  buildRequested(image: string): boolean;
  /** Since when a build is asked for, unix seconds; undefined: it is not. */
  buildRequestedAt(image: string): number | undefined;
  /**
   * Returns the last failed build of the image. A successful build does not remove it: the image fails to build if no
   * `ready` build is newer.
   */
  lastBuildFailure(image: string): ImageBuildFailure | undefined;
  /** Whether anybody contends for the lock for building the image. */
  isBuilding(image: string): boolean;
  /** Whether anybody contends for the lock for uploading the build to the provider. */
  isUploading(place: UploadPlace): boolean;
  /** Whether anybody contends for the lock for cleaning the build up. */
  isBuildLocked(build: BuildRef): boolean;
  /** Whether anybody contends for the lock for deleting the upload. */
  isUploadLocked(upload: UploadRef): boolean;
  corrupt(): Iterable<CorruptRecord>;
  /** Called after every change of what this answers for the image: records, marks, and locks taken or given up. */
  onChange(listener: (image: string) => void): () => void;

  /** Names of all images, read past the cache. */
  readImages(options?: CallOptions): Promise<readonly string[]>;
  /** Ids of all records of builds of an image, corrupt ones included, read past the cache. */
  readBuildIds(image: string, options?: CallOptions): Promise<readonly string[]>;
  /**
   * Removes what an image that has no builds leaves behind, its marks included, in one transaction. False: it has a
   * build, or somebody contends for its lock; then nothing was done.
   */
  removeImage(image: string, options?: CallOptions): Promise<boolean>;

  /** Asks for a build. One that is asked for already stays so. */
  requestBuild(image: string, options?: CallOptions): Promise<void>;
  /** Takes the wish for a build back; that there is none is fine. */
  removeBuildRequest(image: string, options?: CallOptions): Promise<void>;
  pause(image: string, options?: CallOptions): Promise<void>;
  unpause(image: string, options?: CallOptions): Promise<void>;

  /** Takes the lock for building an image. Undefined: somebody contends for it. */
  tryLockBuilding(image: string, options?: CallOptions): Promise<BuildingLock | undefined>;
  /**
   * Takes the lock for uploading a build to a provider. Undefined: somebody contends for it, or the build changed or went
   * since the cache learnt of it.
   */
  tryLockUploading(place: UploadPlace, options?: CallOptions): Promise<UploadingLock | undefined>;
  /**
   * Takes the lock for cleaning a build up and, if given, changes its record, in one transaction. Undefined: somebody was
   * faster (the lock is taken, or the record changed or went).
   */
  tryLockBuild(
    build: BuildRef,
    options?: { readonly change?: Partial<ImageBuildData> } & CallOptions,
  ): Promise<LockedBuild | undefined>;
  /** As `tryLockBuild`, for an upload. */
  tryLockUpload(
    upload: UploadRef,
    options?: { readonly change?: Partial<ImageUploadData> } & CallOptions,
  ): Promise<LockedUpload | undefined>;
}

/** The right to build an image. `lock.lost` aborts when it is lost, or given up by `release` of this or of the handle. */
export interface BuildingLock {
  readonly image: string;
  readonly lock: HeldLock;
  /** Makes the record of a build. `id`: 32 hex digits; default: a new one. */
  create(build: ImageBuildData, options?: { readonly id?: string } & CallOptions): Promise<BuildHandle>;
  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void>;
  /** Gives the lock up; idempotent. */
  release(): Promise<void>;
}

/** The right to upload a build to a provider; as `BuildingLock`. */
export interface UploadingLock extends UploadPlace {
  readonly lock: HeldLock;
  /** Makes the record of an upload, as long as the build is there. */
  create(upload: ImageUploadData, options?: CallOptions): Promise<UploadHandle>;
  release(): Promise<void>;
}

/** A build whose record is ours to write. */
export interface BuildHandle {
  /** As it was last read or written. */
  readonly build: ImageBuild;
  readonly lock: HeldLock;
  /** Versioned and fenced write; sets `state_time` when `state` changes. Writes of one handle are applied in order. */
  update(change: Partial<ImageBuildData>, options?: CallOptions): Promise<void>;
  /** Replaces the last failed build of the image, fenced by the lock. */
  recordFailure(failure: ImageBuildFailure, options?: CallOptions): Promise<void>;
  /**
   * Gives the lock up, with a last change in the same transaction. With `fulfilsRequest`, the wish for a build of the image
   * goes with it.
   */
  release(
    change?: Partial<ImageBuildData>,
    options?: { readonly fulfilsRequest?: boolean } & CallOptions,
  ): Promise<void>;
}

/** An upload whose record is ours to write. */
export interface UploadHandle {
  readonly upload: ImageUpload;
  readonly lock: HeldLock;
  update(change: Partial<ImageUploadData>, options?: CallOptions): Promise<void>;
  release(change?: Partial<ImageUploadData>, options?: CallOptions): Promise<void>;
}

/** A build whose own lock we hold. */
export interface LockedBuild extends BuildHandle {
  /**
   * Removes the record and everything below it in one transaction, and the lock with it. False: not now, because the
   * record of an upload is there or somebody contends for a lock; then nothing was done and the lock is still held.
   */
  remove(options?: CallOptions): Promise<boolean>;
}

/** An upload whose own lock we hold. */
export interface LockedUpload extends UploadHandle {
  /**
   * Removes the record and its lock in one transaction. Its parents stay until the build goes: they keep the sequence from
   * giving the same id again. False: not now, because somebody contends for the lock, which is still held.
   */
  remove(options?: CallOptions): Promise<boolean>;
}
