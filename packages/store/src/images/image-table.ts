/** The known images, with their builds, uploads and locks, as the znodes that were last seen describe them. */

import type { ImageBuild, ImageBuildFailure, ImageStage, ImageUpload, Logger } from '@nodepool/core';
import type { TreeNode } from '@nodepool/zookeeper';
import { buildCodec, decodeBuildFailure, uploadCodec } from '../codec/image.js';
import type { Decoded } from '../codec/codec.js';
import type { CorruptRecord } from '../errors.js';
import type { ImageRecordEntry } from './image-locks.js';
import type { ImagePlace } from '../paths.js';

/** The known state of one image; uploads are by path. */
export interface ImageEntry {
  present: boolean;
  paused: boolean;
  /** Unix seconds. */
  buildRequestedAt: number | undefined;
  lastFailure: ImageBuildFailure | undefined;
  readonly builds: Map<string, ImageRecordEntry<ImageBuild>>;
  readonly uploads: Map<string, ImageRecordEntry<ImageUpload>>;
}

export class ImageTable {
  private readonly images = new Map<string, ImageEntry>();
  private readonly unreadable = new Map<string, CorruptRecord>();
  /** Stages by path of the uploads that serve no requests. */
  private readonly unserved = new Map<string, ImageStage>();
  /** Number of contenders by path of the lock. */
  private readonly contenders = new Map<string, number>();

  constructor(private readonly log: Logger) {}

  get(image: string): Readonly<ImageEntry> | undefined {
    return this.images.get(image);
  }

  /** Returns the names of all known images, sorted. */
  names(): readonly string[] {
    return [...this.images.keys()].sort();
  }

  /** Returns the stage of the upload of this path if it serves no requests. */
  unservedStage(upload: string): ImageStage | undefined {
    return this.unserved.get(upload);
  }

  /** True if an upload serves no requests because of its stage. */
  get hasUnserved(): boolean {
    return this.unserved.size > 0;
  }

  isContended(lock: string): boolean {
    return this.contenders.has(lock);
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.unreadable.values();
  }

  /** Returns true if a result for the image has changed. */
  put(place: ImagePlace, znode: TreeNode, isNew: boolean): boolean {
    if (place.kind === 'foreign' && isNew) {
      const message =
        'A znode below a lock of a disk image is no contender, so the lock counts as held: remove the znode';
      this.log.warn(message, { path: znode.path });
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
          this.log.warn('A record cannot be read', { path: znode.path, reason: failure });
        image.lastFailure = typeof failure === 'string' ? undefined : failure;
        break;
      }
      case 'build':
        this.keep(image.builds, place.id, znode, buildCodec.decode(znode.data, place, changedAt));
        break;
      case 'upload': {
        this.keep(image.uploads, znode.path, znode, uploadCodec.decode(znode.data, place, changedAt));
        const stage = image.uploads.get(znode.path)?.source.value.review?.stage;
        if (stage === undefined || stage === 'promoted' || stage === 'canary') this.unserved.delete(znode.path);
        else this.unserved.set(znode.path, stage);
      }
    }
    return true;
  }

  /** Returns true if a result for the image has changed. */
  remove(place: ImagePlace, path: string): boolean {
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
        this.unserved.delete(path);
    }
    if (isForgotten(image)) this.images.delete(place.image);
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
    records: Map<string, ImageRecordEntry<T>>,
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
    this.log.warn('A record cannot be read and is ignored', { path, reason, version });
  }

  private imageOf(name: string): ImageEntry {
    let image = this.images.get(name);
    if (image === undefined) {
      image = {
        present: false,
        paused: false,
        buildRequestedAt: undefined,
        lastFailure: undefined,
        builds: new Map(),
        uploads: new Map(),
      };
      this.images.set(name, image);
    }
    return image;
  }
}

function isForgotten({ present, paused, buildRequestedAt, lastFailure, builds, uploads }: ImageEntry): boolean {
  if (present || paused || buildRequestedAt !== undefined || lastFailure !== undefined) return false;
  return builds.size === 0 && uploads.size === 0;
}
