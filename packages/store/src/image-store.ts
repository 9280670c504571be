/** Image builds and uploads: `/nodepool/images`. */

import type { CallOptions, TreeNode } from '@nodepool/zookeeper';
import { buildCodec, decodeBuildFailure, uploadCodec } from './codec/image.js';
import type { Decoded, Source } from './codec/codec.js';
import {
  type Emitter,
  isUsableUpload,
  type ImageBuild,
  type ImageBuildData,
  type ImageBuildFailure,
  type ImageUpload,
  type ImageUploadData,
} from '@nodepool/core';
import type { CorruptRecord } from './errors.js';
import type { StoreContext } from './context.js';
import type {
  BuildingLock,
  BuildRef,
  ImageStore,
  LockedBuild,
  LockedUpload,
  UploadPlace,
  UploadRef,
  UploadingLock,
} from './image-api.js';
import { pathOfUpload } from './image-handle.js';
import { ImageLocks, type KnownRecord } from './image-locks.js';
import { mark, removeImage, unmark } from './image-marks.js';
import { storeEmitter } from './listeners.js';
import {
  IMAGES_ROOT,
  buildLockPath,
  buildRequestPath,
  buildingLockPath,
  buildsPath,
  imagePausePath,
  placeOfImage,
  uploadLockPath,
  uploadingLockPath,
  type ImagePlace,
} from './paths.js';
import { childrenOf } from './znodes-below.js';

/** The known state of one image; uploads are by path. */
interface KnownImage {
  present: boolean;
  paused: boolean;
  /** Unix seconds. */
  buildRequestedAt: number | undefined;
  lastFailure: ImageBuildFailure | undefined;
  readonly builds: Map<string, KnownRecord<ImageBuild>>;
  readonly uploads: Map<string, KnownRecord<ImageUpload>>;
}

/** Kinds of znodes whose data or times are used. */
const WITH_DATA: ReadonlySet<ImagePlace['kind']> = new Set(['build', 'upload', 'build-request', 'last-failure']);

export class ImageRecords implements ImageStore {
  private readonly known = new Map<string, KnownImage>();
  private readonly unreadable = new Map<string, CorruptRecord>();
  /** Number of contenders by path of the lock. */
  private readonly contenders = new Map<string, number>();
  private readonly changes: Emitter<string>;
  private readonly locks: ImageLocks;

  constructor(private readonly context: StoreContext) {
    this.changes = storeEmitter(context.log);
    this.locks = new ImageLocks(context);
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
        if (this.put(place, znode, before === undefined)) this.changes.emit(place.image);
      },
      onRemove: ({ path }) => {
        const place = placeOfImage(path);
        if (place === undefined) return;
        if (this.remove(place, path)) this.changes.emit(place.image);
      },
    });
  }

  async syncCache(options?: CallOptions): Promise<void> {
    const { zooKeeper } = this.context;
    await zooKeeper.sync(IMAGES_ROOT, options);
    await zooKeeper.exists(IMAGES_ROOT, options);
    await zooKeeper.exists(IMAGES_ROOT, options);
  }

  builds(image: string): readonly ImageBuild[] {
    return valuesByAge(this.known.get(image)?.builds);
  }

  *buildsOfBuilder(builderId: string): Iterable<ImageBuild> {
    for (const image of [...this.known.keys()].sort()) {
      for (const build of this.builds(image)) if (build.builder_id === builderId) yield build;
    }
  }

  build({ image, id }: BuildRef): ImageBuild | undefined {
    return this.known.get(image)?.builds.get(id)?.source.value;
  }

  buildBegan({ image, id }: BuildRef): number | undefined {
    return this.known.get(image)?.builds.get(id)?.createdAt;
  }

  *uploads(query: {
    readonly image?: string;
    readonly build?: string;
    readonly provider?: string;
  }): Iterable<ImageUpload> {
    const images = query.image === undefined ? [...this.known.keys()].sort() : [query.image];
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
    for (const name of [...this.known.keys()].sort()) {
      if (this.known.get(name)?.present === true) yield name;
    }
  }

  newestReadyUpload(image: string, provider: string): ImageUpload | undefined {
    let newest: ImageUpload | undefined;
    for (const { source } of this.known.get(image)?.uploads.values() ?? []) {
      const upload = source.value;
      if (upload.provider !== provider || !isUsableUpload(upload)) continue;
      if (newest === undefined || byAge(newest, upload) < 0) newest = upload;
    }
    return newest;
  }

  paused(image: string): boolean {
    return this.known.get(image)?.paused ?? false;
  }

  buildRequested(image: string): boolean {
    return this.buildRequestedAt(image) !== undefined;
  }

  buildRequestedAt(image: string): number | undefined {
    return this.known.get(image)?.buildRequestedAt;
  }

  lastBuildFailure(image: string): ImageBuildFailure | undefined {
    return this.known.get(image)?.lastFailure;
  }

  isBuilding(image: string): boolean {
    return this.contenders.has(buildingLockPath(image));
  }

  isUploading({ image, build, provider }: UploadPlace): boolean {
    return this.contenders.has(uploadingLockPath(image, build, provider));
  }

  isBuildLocked({ image, id }: BuildRef): boolean {
    return this.contenders.has(buildLockPath(image, id));
  }

  isUploadLocked({ image, build, provider, id }: UploadRef): boolean {
    return this.contenders.has(uploadLockPath(image, build, provider, id));
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.unreadable.values();
  }

  onChange(listener: (image: string) => void): () => void {
    return this.changes.on(listener);
  }

  readImages(options?: CallOptions): Promise<readonly string[]> {
    return childrenOf(this.context.zooKeeper, IMAGES_ROOT, options);
  }

  async readBuildIds(image: string, options?: CallOptions): Promise<readonly string[]> {
    const names = await childrenOf(this.context.zooKeeper, buildsPath(image), options);
    return names.filter((name) => name !== 'lock');
  }

  removeImage(image: string, options?: CallOptions): Promise<boolean> {
    return removeImage(this.context, image, options);
  }

  requestBuild(image: string, options?: CallOptions): Promise<void> {
    return mark(this.context, image, buildRequestPath(image), options);
  }

  removeBuildRequest(image: string, options?: CallOptions): Promise<void> {
    return unmark(this.context, buildRequestPath(image), options);
  }

  pause(image: string, options?: CallOptions): Promise<void> {
    return mark(this.context, image, imagePausePath(image), options);
  }

  unpause(image: string, options?: CallOptions): Promise<void> {
    return unmark(this.context, imagePausePath(image), options);
  }

  async tryLockBuilding(image: string, options?: CallOptions): Promise<BuildingLock | undefined> {
    if (this.isBuilding(image)) return undefined;
    return this.locks.tryLockBuilding(image, options);
  }

  async tryLockUploading(place: UploadPlace, options?: CallOptions): Promise<UploadingLock | undefined> {
    const build = this.known.get(place.image)?.builds.get(place.build);
    if (build === undefined || this.isUploading(place)) return undefined;
    return this.locks.tryLockUploading(place, build.version, options);
  }

  async tryLockBuild(
    build: BuildRef,
    options?: { readonly change?: Partial<ImageBuildData> } & CallOptions,
  ): Promise<LockedBuild | undefined> {
    const known = this.known.get(build.image)?.builds.get(build.id);
    if (known === undefined || this.isBuildLocked(build)) return undefined;
    return this.locks.tryLockBuild(build, known, options);
  }

  async tryLockUpload(
    upload: UploadRef,
    options?: { readonly change?: Partial<ImageUploadData> } & CallOptions,
  ): Promise<LockedUpload | undefined> {
    const known = this.known.get(upload.image)?.uploads.get(pathOfUpload(upload));
    if (known === undefined || this.isUploadLocked(upload)) return undefined;
    return this.locks.tryLockUpload(upload, known, options);
  }

  /** Returns true if a result for the image has changed. */
  private put(place: ImagePlace, znode: TreeNode, isNew: boolean): boolean {
    if (place.kind === 'foreign' && isNew) {
      const message =
        'A znode below a lock of a disk image is no contender, so the lock counts as held: remove the znode';
      this.context.log.warn(message, { path: znode.path });
    }
    if (place.kind === 'contender' || place.kind === 'foreign') return isNew && this.contend(place.lock, 1);
    const image = this.imageOf(place.image);
    const changedAt = znode.stat.mtime / 1000;
    switch (place.kind) {
      case 'image':
        image.present = true;
        break;
      case 'pause':
        image.paused = true;
        break;
      case 'build-request':
        image.buildRequestedAt = znode.stat.ctime / 1000;
        break;
      case 'last-failure': {
        const failure = decodeBuildFailure(znode.data, changedAt);
        if (typeof failure === 'string')
          this.context.log.warn('A record cannot be read', { path: znode.path, reason: failure });
        image.lastFailure = typeof failure === 'string' ? undefined : failure;
        break;
      }
      case 'build':
        this.keep(image.builds, place.id, znode, buildCodec.decode(znode.data, place, changedAt));
        break;
      case 'upload':
        this.keep(image.uploads, znode.path, znode, uploadCodec.decode(znode.data, place, changedAt));
    }
    return true;
  }

  /** Returns true if a result for the image has changed. */
  private remove(place: ImagePlace, path: string): boolean {
    if (place.kind === 'contender' || place.kind === 'foreign') return this.contend(place.lock, -1);
    const image = this.imageOf(place.image);
    this.unreadable.delete(path);
    switch (place.kind) {
      case 'image':
        image.present = false;
        break;
      case 'pause':
        image.paused = false;
        break;
      case 'build-request':
        image.buildRequestedAt = undefined;
        break;
      case 'last-failure':
        image.lastFailure = undefined;
        break;
      case 'build':
        image.builds.delete(place.id);
        break;
      case 'upload':
        image.uploads.delete(path);
    }
    if (isForgotten(image)) this.known.delete(place.image);
    return true;
  }

  /** Adds or subtracts a contender. Returns true if the lock became contended or free. */
  private contend(lock: string, by: 1 | -1): boolean {
    const before = this.contenders.get(lock) ?? 0;
    const after = Math.max(0, before + by);
    if (after === 0) this.contenders.delete(lock);
    else this.contenders.set(lock, after);
    return (before === 0) !== (after === 0);
  }

  private keep<T>(
    records: Map<string, KnownRecord<T>>,
    key: string,
    { path, stat }: TreeNode,
    decoded: Decoded<T>,
  ): void {
    const { version, ctime } = stat;
    if (decoded.ok) {
      this.unreadable.delete(path);
      records.set(key, { source: decoded.source, version, createdAt: ctime / 1000 });
      return;
    }
    const reason = `the record cannot be read: ${decoded.reason}`;
    records.delete(key);
    this.unreadable.set(path, { path, reason, version });
    this.context.log.warn('A record cannot be read and is ignored', { path, reason, version });
  }

  private imageOf(name: string): KnownImage {
    let image = this.known.get(name);
    if (image === undefined) {
      image = {
        present: false,
        paused: false,
        buildRequestedAt: undefined,
        lastFailure: undefined,
        builds: new Map(),
        uploads: new Map(),
      };
      this.known.set(name, image);
    }
    return image;
  }
}

function isForgotten({ present, paused, buildRequestedAt, lastFailure, builds, uploads }: KnownImage): boolean {
  if (present || paused || buildRequestedAt !== undefined || lastFailure !== undefined) return false;
  return builds.size === 0 && uploads.size === 0;
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
