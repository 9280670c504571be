/**
 * Finds images in service that no longer exist in their clouds. A listed image counts as gone if two lists, a minute
 * apart, lack it; its upload is then marked, so that nodes use an older one and the build is uploaded again. Nothing is
 * deleted, and the mark is removed if the image is listed again.
 */

import {
  driverCall,
  externalIdKey,
  WorkQueue,
  type Call,
  type ImageUpload,
  type Reconciled,
  type Reconciliation,
} from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { BuilderContext } from './context.js';
import type { ImageProvider, ImageProviders } from './image-providers.js';

/** Interval (ms) between lists of a provider's images. */
const INTERVAL_MS = 600_000;
/** Minimum time (ms) between two lists that together prove that an image is missing. */
const CONFIRM_MS = 60_000;
const LIST_TIMEOUT_MS = 300_000;

export class ImagePresence {
  /** Queue of providers. */
  private readonly queue: WorkQueue<string>;
  /** By provider and upload: time (`Clock.monotonic` milliseconds) of the first list without the upload's image. */
  private readonly missing = new Map<string, ReadonlyMap<string, number>>();

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: (provider) => `list images of provider ${provider}`,
      about: (provider) => ({ provider }),
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: (provider, run) => this.reconcile(provider, run),
      onFailure: (provider, error, retry) => {
        if (retry === undefined) return;
        const fields = { provider, error, seconds: retry.waitMs / 1000 };
        context.log.warn('Failed to check the images of the provider', fields);
      },
    });
  }

  apply(config: NodepoolConfig): void {
    for (const provider of config.providers.keys()) this.queue.add(provider, CONFIRM_MS);
  }

  stop(reason: Error): void {
    this.queue.abort(reason);
  }

  private async reconcile(name: string, { signal }: Reconciliation): Promise<Reconciled> {
    const provider = this.providers.get(name);
    if (provider === undefined || !this.context.store.complete) return { requeueAfterMs: INTERVAL_MS };
    const release = provider.use();
    try {
      return { requeueAfterMs: await this.check(provider, signal) };
    } finally {
      release();
    }
  }

  /** Lists a provider's images. Resolves with the milliseconds until the next list. */
  private async check({ config, images, log }: ImageProvider, signal: AbortSignal): Promise<number> {
    const { clock } = this.context;
    const uploads = this.uploadsTo(config.name);
    const before = this.missing.get(config.name);
    const missing = new Map<string, number>();
    this.missing.set(config.name, missing);
    if (uploads.length === 0) return INTERVAL_MS;
    const call: Call = { signal, deadline: clock.monotonic() + LIST_TIMEOUT_MS, log };
    const askedAt = clock.monotonic();
    const list = await driverCall(
      this.context.clock,
      `the list of images of provider ${config.name}`,
      call,
      (guarded) => images.listImages(guarded),
    );
    const listed = new Set(list.map(({ externalId }) => externalIdKey(externalId)));
    for (const upload of uploads) {
      if (upload.external_id !== null && listed.has(externalIdKey(upload.external_id))) {
        if (upload.listed !== true) await this.mark(upload, true, signal);
      } else if (upload.listed === true) {
        const firstAt = before?.get(keyOf(upload)) ?? askedAt;
        if (askedAt - firstAt < CONFIRM_MS) missing.set(keyOf(upload), firstAt);
        else if (await this.mark(upload, false, signal)) {
          const { image, build, id, external_id: externalId } = upload;
          const about = { image, build_id: build, upload_id: id, external_id: externalId };
          log.warn('An image in service no longer exists in the cloud; its build will be uploaded again', about);
        }
      }
    }
    return missing.size > 0 ? CONFIRM_MS : INTERVAL_MS;
  }

  /**
   * Returns ready uploads of builds that this builder can upload again, and those whose mark it can remove: the builder
   * of a marked upload may never return.
   */
  private uploadsTo(provider: string): readonly ImageUpload[] {
    const { store, builderId } = this.context;
    return [...store.images.uploads({ provider })].filter(
      ({ state, listed, image, build }) =>
        state === 'ready' && (listed === false || store.images.build({ image, id: build })?.builder_id === builderId),
    );
  }

  /**
   * Marks an upload. Returns false if the upload changed or another process has locked it: a later list finds it again.
   */
  private async mark(upload: ImageUpload, listed: boolean, signal: AbortSignal): Promise<boolean> {
    const handle = await this.context.store.images.tryLockUpload(upload, { change: { listed }, signal });
    if (handle === undefined) return false;
    await handle.lock.release();
    return true;
  }
}

function keyOf({ image, build, id }: ImageUpload): string {
  return `${image}/${build}/${id}`;
}
