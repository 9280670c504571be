/**
 * Finds images in service that are gone from their clouds. A listed image counts as gone when two
 * lists, a minute apart, lack it; then its upload is marked, so that nodes use an older one and the build is uploaded
 * again. Nothing is deleted here, and the mark goes away if the image is listed again.
 */

import { externalIdKey, GuardedCalls, TimerQueue, type Call, type ImageUpload } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { Agenda } from './agenda.js';
import type { BuilderContext } from './context.js';
import type { ImageProvider, ImageProviders } from './image-providers.js';

/** Time between two lists of a provider's images, milliseconds. */
const INTERVAL_MS = 600_000;
/** Time between two lists that together prove that an image is gone, milliseconds. */
const CONFIRM_MS = 60_000;
const LIST_TIMEOUT_MS = 300_000;

export class ImagePresence {
  private readonly agenda: Agenda;
  private readonly calls: GuardedCalls;
  private readonly running = new Set<string>();
  /** By provider: when a list first lacked the image of an upload, `Clock.monotonic` milliseconds by upload. */
  private readonly missing = new Map<string, ReadonlyMap<string, number>>();
  private readonly stopping = new AbortController();

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
  ) {
    this.agenda = new Agenda(context.clock, (provider) => this.look(provider));
    this.calls = new GuardedCalls(new TimerQueue(context.clock));
  }

  /** Follows another configuration. */
  apply(config: NodepoolConfig): void {
    for (const provider of config.providers.keys()) this.agenda.after(provider, CONFIRM_MS);
  }

  stop(): void {
    this.agenda.clear();
    this.stopping.abort(new Error('the builder stops'));
  }

  private look(name: string): void {
    const provider = this.providers.get(name);
    if (this.stopping.signal.aborted || this.running.has(name)) return;
    if (provider === undefined || !this.context.store.complete) {
      this.agenda.after(name, INTERVAL_MS);
      return;
    }
    this.running.add(name);
    const release = provider.use();
    this.context.tasks.run(`list images of provider ${name}`, async () => {
      const nextMs = await this.tryCheck(provider);
      release();
      this.running.delete(name);
      if (!this.stopping.signal.aborted) this.agenda.after(name, nextMs);
    });
  }

  /** Resolves with the milliseconds until the next list. Never rejects. */
  private async tryCheck(provider: ImageProvider): Promise<number> {
    try {
      return await this.check(provider);
    } catch (error) {
      if (!this.stopping.signal.aborted) {
        provider.log.warn('Failed to check the images of the provider', { error, seconds: INTERVAL_MS / 1000 });
      }
      return INTERVAL_MS;
    }
  }

  private async check({ config, images, log }: ImageProvider): Promise<number> {
    const { clock } = this.context;
    const uploads = this.uploadsTo(config.name);
    const before = this.missing.get(config.name);
    const missing = new Map<string, number>();
    this.missing.set(config.name, missing);
    if (uploads.length === 0) return INTERVAL_MS;
    const call: Call = { signal: this.stopping.signal, deadline: clock.monotonic() + LIST_TIMEOUT_MS, log };
    const askedAt = clock.monotonic();
    const list = await this.calls.make(`the list of images of provider ${config.name}`, call, (guarded) =>
      images.listImages(guarded),
    );
    const listed = new Set(list.map(({ externalId }) => externalIdKey(externalId)));
    for (const upload of uploads) {
      if (upload.external_id !== null && listed.has(externalIdKey(upload.external_id))) {
        if (upload.listed !== true) await this.mark(upload, true);
      } else if (upload.listed === true) {
        const firstAt = before?.get(keyOf(upload)) ?? askedAt;
        if (askedAt - firstAt < CONFIRM_MS) missing.set(keyOf(upload), firstAt);
        else if (await this.mark(upload, false)) {
          const { image, build, id, external_id: externalId } = upload;
          const about = { image, build_id: build, upload_id: id, external_id: externalId };
          log.warn('An image in service is gone from the cloud; its build is uploaded again', about);
        }
      }
    }
    return missing.size > 0 ? CONFIRM_MS : INTERVAL_MS;
  }

  /** Ready uploads of builds that this builder can upload again. */
  private uploadsTo(provider: string): readonly ImageUpload[] {
    const { store, builderId } = this.context;
    return [...store.images.uploads({ provider })].filter(
      ({ state, image, build }) =>
        state === 'ready' && store.images.build({ image, id: build })?.builder_id === builderId,
    );
  }

  /** Returns false if the upload changed or another process works on it: a later list finds it again. */
  private async mark(upload: ImageUpload, listed: boolean): Promise<boolean> {
    const { signal } = this.stopping;
    const handle = await this.context.store.images.tryLockUpload(upload, { change: { listed }, signal });
    if (handle === undefined) return false;
    await handle.lock.release();
    return true;
  }
}

function keyOf({ image, build, id }: ImageUpload): string {
  return `${image}/${build}/${id}`;
}
