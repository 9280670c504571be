/** Image builds and uploads: `/nodepool/images`. */

import type { TreeNode } from '@nodepool/zookeeper';
import { buildCodec, uploadCodec } from '../model/codec-image.js';
import type { Decoded } from '../model/codec.js';
import type { ImageBuild, ImageUpload } from '../model/image.js';
import type { CorruptRecord, ImageStore } from './api.js';
import type { StoreContext } from './context.js';
import { Listeners } from './listeners.js';
import { IMAGES_ROOT, placeOfImage, type ImagePlace } from './paths.js';

/** What is known of one image. Uploads by path. */
interface KnownImage {
  present: boolean;
  paused: boolean;
  buildRequested: boolean;
  readonly builds: Map<string, ImageBuild>;
  readonly uploads: Map<string, ImageUpload>;
}

export class ImageRecords implements ImageStore {
  private readonly known = new Map<string, KnownImage>();
  private readonly unreadable = new Map<string, CorruptRecord>();
  private readonly changes: Listeners<string>;

  constructor(private readonly context: StoreContext) {
    this.changes = new Listeners(context.log);
    context.caches.add({
      root: IMAGES_ROOT,
      wantsData: (path) => {
        const kind = placeOfImage(path)?.kind;
        return kind === 'build' || kind === 'upload';
      },
      onPut: (znode) => {
        const place = placeOfImage(znode.path);
        if (place === undefined) return;
        this.put(place, znode);
        this.changes.tell(place.image);
      },
      onRemove: ({ path }) => {
        const place = placeOfImage(path);
        if (place === undefined) return;
        this.remove(place, path);
        this.changes.tell(place.image);
      },
    });
  }

  builds(image: string): readonly ImageBuild[] {
    return [...(this.known.get(image)?.builds.values() ?? [])].sort(byAge);
  }

  *uploads(query: { readonly image?: string; readonly provider?: string }): Iterable<ImageUpload> {
    const images = query.image === undefined ? [...this.known.keys()].sort() : [query.image];
    for (const image of images) {
      for (const upload of [...(this.known.get(image)?.uploads.values() ?? [])].sort(byAge)) {
        if (query.provider === undefined || upload.provider === query.provider) yield upload;
      }
    }
  }

  *images(): Iterable<string> {
    for (const name of [...this.known.keys()].sort()) {
      if (this.known.get(name)?.present === true) yield name;
    }
  }

  newestReadyUpload(image: string, provider: string): ImageUpload | undefined {
    let newest: ImageUpload | undefined;
    for (const upload of this.known.get(image)?.uploads.values() ?? []) {
      if (upload.provider !== provider || upload.state !== 'ready') continue;
      if (newest === undefined || byAge(newest, upload) < 0) newest = upload;
    }
    return newest;
  }

  paused(image: string): boolean {
    return this.known.get(image)?.paused ?? false;
  }

  buildRequested(image: string): boolean {
    return this.known.get(image)?.buildRequested ?? false;
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.unreadable.values();
  }

  onChange(listener: (image: string) => void): () => void {
    return this.changes.add(listener);
  }

  private put(place: ImagePlace, znode: TreeNode): void {
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
        image.buildRequested = true;
        break;
      case 'build':
        this.keep(image.builds, place.id, znode, buildCodec.decode(znode.data, place, changedAt));
        break;
      case 'upload':
        this.keep(image.uploads, znode.path, znode, uploadCodec.decode(znode.data, place, changedAt));
    }
  }

  private remove(place: ImagePlace, path: string): void {
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
        image.buildRequested = false;
        break;
      case 'build':
        image.builds.delete(place.id);
        break;
      case 'upload':
        image.uploads.delete(path);
    }
    if (isForgotten(image)) this.known.delete(place.image);
  }

  private keep<T>(records: Map<string, T>, key: string, { path, stat }: TreeNode, decoded: Decoded<T>): void {
    if (decoded.ok) {
      this.unreadable.delete(path);
      records.set(key, decoded.source.value);
      return;
    }
    const reason = `the record cannot be read: ${decoded.reason}`;
    records.delete(key);
    this.unreadable.set(path, { path, reason, version: stat.version });
    this.context.log.warn('A record cannot be read; it is left alone', { path, reason, version: stat.version });
  }

  private imageOf(name: string): KnownImage {
    let image = this.known.get(name);
    if (image === undefined) {
      image = { present: false, paused: false, buildRequested: false, builds: new Map(), uploads: new Map() };
      this.known.set(name, image);
    }
    return image;
  }
}

function isForgotten({ present, paused, buildRequested, builds, uploads }: KnownImage): boolean {
  return !present && !paused && !buildRequested && builds.size === 0 && uploads.size === 0;
}

/** Oldest first; equal times in an order that is always the same. */
function byAge(a: ImageBuild | ImageUpload, b: ImageBuild | ImageUpload): number {
  return a.state_time - b.state_time || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
