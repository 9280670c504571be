/**
 * Image builds and uploads: `/nodepool/images`. A builder holds the lock of a build or upload job and gets the handle
 * of the record that it creates under it; cleanup locks the record itself. The errors are those of `store.ts`.
 */

import type { CallOptions } from '@nodepool/zookeeper';
import type { Source } from '../codec/codec.js';
import {
  type Emitter,
  type ImageBuild,
  type ImageBuildData,
  type ImageBuildFailure,
  type ImageUpload,
  type ImageUploadData,
} from '@nodepool/core';
import type { CorruptRecord } from '../errors.js';
import type { StoreContext } from '../context.js';
import type { BuildingLock, LockedBuildHandle, LockedUploadHandle, UploadingLock } from './image-handle.js';
import { pathOfUpload } from './image-handle.js';
import type { BuildRef, UploadPlace, UploadRef } from './image-refs.js';
import { EmptyRecords } from '../tables/empty-records.js';
import { chooseUpload, type ChoicePolicy, type ChoosingRequest, type ImageChoice } from './image-standing.js';
import { ImageTable } from './image-table.js';
import { ImageLocks } from './image-locks.js';
import { mark, removeImage, removeProvider, unmark } from './image-marks.js';
import { storeEmitter } from '../tables/listeners.js';
import {
  IMAGES_ROOT,
  buildLockPath,
  buildRequestPath,
  buildingLockPath,
  imagePausePath,
  isBuildDirectory,
  placeOfImage,
  uploadLockPath,
  uploadingLockPath,
  type ImagePlace,
} from '../paths.js';

/** Kinds of znodes whose data or times are used. */
const WITH_DATA: ReadonlySet<ImagePlace['kind']> = new Set(['build', 'upload', 'build-request', 'last-failure']);

const UNTESTED: ChoicePolicy = { isTested: false, share: 0 };

/** The builds and uploads of the ensemble, and their locks. */
export class ImageStore {
  private readonly known: ImageTable;
  private readonly changes: Emitter<string>;
  private readonly locks: ImageLocks;
  private readonly emptyBuilds: EmptyRecords;

  constructor(private readonly context: StoreContext) {
    this.changes = storeEmitter(context.log);
    this.known = new ImageTable(context.log);
    this.locks = new ImageLocks(context);
    const corruptBuilds = (): CorruptRecord[] =>
      [...this.corrupt()].filter(({ path }) => placeOfImage(path)?.kind === 'build');
    this.emptyBuilds = new EmptyRecords(context, corruptBuilds, isBuildDirectory);
    context.caches.add({
      root: IMAGES_ROOT,
      wantsData: (path) => {
        const kind = placeOfImage(path)?.kind;
        return kind !== undefined && WITH_DATA.has(kind);
      },
      isLeaf: (path) => placeOfImage(path)?.kind === 'contender',
      onPut: (znode, before) => {
        const place = placeOfImage(znode.path);
        if (place === undefined) return;
        if (this.known.put(place, znode, before === undefined)) this.changes.emit(place.image);
      },
      onRemove: ({ path }) => {
        const place = placeOfImage(path);
        if (place === undefined) return;
        if (this.known.remove(place, path)) this.changes.emit(place.image);
      },
    });
  }

  /**
   * Resolves once the cache has everything that was written before the call. Answers come in order: the first read is
   * answered after the events of those writes, the second after the reads that the cache issues for these events.
   */
  async syncCache(options?: CallOptions): Promise<void> {
    const { zooKeeper } = this.context;
    await zooKeeper.sync(IMAGES_ROOT, options);
    await zooKeeper.exists(IMAGES_ROOT, options);
    await zooKeeper.exists(IMAGES_ROOT, options);
  }

  /** Returns the builds of an image, oldest first. */
  builds(image: string): readonly ImageBuild[] {
    return valuesByAge(this.known.get(image)?.builds);
  }

  build({ image, id }: BuildRef): ImageBuild | undefined {
    return this.known.get(image)?.builds.get(id)?.source.value;
  }

  /** Returns the time at which the build's record was created, unix seconds; undefined if there is no such build. */
  buildBegan({ image, id }: BuildRef): number | undefined {
    return this.known.get(image)?.builds.get(id)?.createdAt;
  }

  /** Returns uploads by image, oldest first. */
  *uploads(query: {
    readonly image?: string;
    readonly build?: string;
    readonly provider?: string;
  }): Iterable<ImageUpload> {
    const images = query.image === undefined ? this.known.names() : [query.image];
    for (const image of images) {
      for (const upload of valuesByAge(this.known.get(image)?.uploads)) {
        const isWanted =
          (query.provider === undefined || upload.provider === query.provider) &&
          (query.build === undefined || upload.build === query.build);
        if (isWanted) yield upload;
      }
    }
  }

  upload(ref: UploadRef): ImageUpload | undefined {
    return this.known.get(ref.image)?.uploads.get(pathOfUpload(ref))?.source.value;
  }

  *images(): Iterable<string> {
    for (const name of this.known.names()) {
      if (this.known.get(name)?.present === true) yield name;
    }
  }

  /**
   * Chooses the upload from which a node is launched; see `chooseUpload`. Without a policy, that is the usable upload
   * with the newest `state_time`, unless uploads have reviews.
   */
  choose(
    image: string,
    provider: string,
    policy: ChoicePolicy = UNTESTED,
    request?: ChoosingRequest,
  ): ImageChoice | undefined {
    const uploads: ImageUpload[] = [];
    for (const { source } of this.known.get(image)?.uploads.values() ?? []) {
      if (source.value.provider === provider) uploads.push(source.value);
    }
    return uploads.length === 0 ? undefined : chooseUpload(uploads, policy, request);
  }

  /** True if an upload serves no requests because of its stage. */
  get hasUnserved(): boolean {
    return this.known.hasUnserved;
  }

  /** Returns false if the image of a node (`image_id`) is an upload that is not tested, rejected or revoked. */
  servesRequests(imageId: string | null): boolean {
    return imageId === null || this.known.unservedStage(imageId) === undefined;
  }

  /** Returns true if the image of a node (`image_id`) is an upload that is rejected or revoked. */
  isBarred(imageId: string | null): boolean {
    const stage = imageId === null ? undefined : this.known.unservedStage(imageId);
    return stage === 'rejected' || stage === 'revoked';
  }

  paused(image: string): boolean {
    return this.known.get(image)?.paused ?? false;
  }

  buildRequested(image: string): boolean {
    return this.buildRequestedAt(image) !== undefined;
  }

  /** Returns the time of the pending build request, unix seconds; undefined if there is none. */
  buildRequestedAt(image: string): number | undefined {
    return this.known.get(image)?.buildRequestedAt;
  }

  /** Returns the last failed build, which a success does not delete; the image fails if no `ready` build is newer. */
  lastBuildFailure(image: string): ImageBuildFailure | undefined {
    return this.known.get(image)?.lastFailure;
  }

  /** Returns true if the lock for building the image is contended. */
  isBuilding(image: string): boolean {
    return this.known.isContended(buildingLockPath(image));
  }

  /** Returns true if the lock for uploading the build to the provider is contended. */
  isUploading({ image, build, provider }: UploadPlace): boolean {
    return this.known.isContended(uploadingLockPath(image, build, provider));
  }

  /** Returns true if the lock for cleaning up the build is contended. */
  isBuildLocked({ image, id }: BuildRef): boolean {
    return this.known.isContended(buildLockPath(image, id));
  }

  /** Returns true if the lock for deleting the upload is contended. */
  isUploadLocked({ image, build, provider, id }: UploadRef): boolean {
    return this.known.isContended(uploadLockPath(image, build, provider, id));
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.known.corrupt();
  }

  /** Calls `listener` after every change of the image's records, marks and locks. */
  onChange(listener: (image: string) => void): () => void {
    return this.changes.on(listener);
  }

  /**
   * Deletes records of builds that this call and the previous one found empty, unchanged, and without uploads and
   * contended locks. Contenders for the locks of deleted builds leave such records behind.
   */
  removeEmptyBuilds(options?: CallOptions): Promise<void> {
    return this.emptyBuilds.remove(options);
  }

  /**
   * Deletes the znodes of an image without builds, its marks included, in one transaction. Returns false, changing
   * nothing, if the image has a build or its lock is contended.
   */
  removeImage(image: string, options?: CallOptions): Promise<boolean> {
    return removeImage(this.context, image, options);
  }

  /**
   * Deletes the znode of a provider below a build, and what is below it, in one transaction. Returns false, changing
   * nothing, if it contains an upload or a contended lock.
   */
  removeProvider(place: UploadPlace, options?: CallOptions): Promise<boolean> {
    return removeProvider(this.context, place, options);
  }

  /** Requests a build. An existing request stays unchanged, unless `renew` replaces it by a new one. */
  async requestBuild(
    image: string,
    { renew = false, ...options }: CallOptions & { readonly renew?: boolean } = {},
  ): Promise<void> {
    const path = buildRequestPath(image);
    if (renew) await unmark(this.context, path, options);
    await mark(this.context, image, path, options);
  }

  pause(image: string, options?: CallOptions): Promise<void> {
    return mark(this.context, image, imagePausePath(image), options);
  }

  unpause(image: string, options?: CallOptions): Promise<void> {
    return unmark(this.context, imagePausePath(image), options);
  }

  /** Acquires the lock for building the image. Resolves with undefined if it is contended. */
  async tryLockBuilding(image: string, options?: CallOptions): Promise<BuildingLock | undefined> {
    if (this.isBuilding(image)) return undefined;
    return this.locks.tryLockBuilding(image, options);
  }

  /**
   * Acquires the lock for uploading a build to a provider. Resolves with undefined if it is contended, or if the build
   * differs from the cached one.
   */
  async tryLockUploading(place: UploadPlace, options?: CallOptions): Promise<UploadingLock | undefined> {
    const build = this.known.get(place.image)?.builds.get(place.build);
    if (build === undefined || this.isUploading(place)) return undefined;
    return this.locks.tryLockUploading(place, build.version, options);
  }

  /**
   * Acquires the lock for cleaning up a build and applies `change`, if given, in one transaction. Resolves with
   * undefined if the lock is taken, or if the record was changed or deleted.
   */
  async tryLockBuild(
    build: BuildRef,
    options?: { readonly change?: Partial<ImageBuildData> } & CallOptions,
  ): Promise<LockedBuildHandle | undefined> {
    const known = this.known.get(build.image)?.builds.get(build.id);
    if (known === undefined || this.isBuildLocked(build)) return undefined;
    return this.locks.tryLockBuild(build, known, options);
  }

  /** Does the same as `tryLockBuild` for an upload. */
  async tryLockUpload(
    upload: UploadRef,
    options?: { readonly change?: Partial<ImageUploadData> } & CallOptions,
  ): Promise<LockedUploadHandle | undefined> {
    const known = this.known.get(upload.image)?.uploads.get(pathOfUpload(upload));
    if (known === undefined || this.isUploadLocked(upload)) return undefined;
    return this.locks.tryLockUpload(upload, known, options);
  }
}

function valuesByAge<T extends ImageBuild | ImageUpload>(
  records: ReadonlyMap<string, { readonly source: Source<T> }> | undefined,
): readonly T[] {
  return [...(records?.values() ?? [])].map(({ source }) => source.value).sort(byAge);
}

/** Orders by age, oldest first; ties have a stable order. */
function byAge(a: ImageBuild | ImageUpload, b: ImageBuild | ImageUpload): number {
  return a.state_time - b.state_time || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
