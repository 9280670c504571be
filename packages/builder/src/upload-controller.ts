/** Uploads new builds whose files this builder has, several in parallel. Reacts to changes of images and providers. */

import type { NodepoolConfig } from '@nodepool/config';
import type { UploadingLock } from '@nodepool/store';
import {
  WorkQueue,
  type DueKey,
  type ImageBuild,
  type ProviderConfig,
  type Reconciled,
  type Reconciliation,
  type Retry,
  type Selection,
} from '@nodepool/core';
import type { UploadActivity } from './activity.js';
import { newestReadyBuild } from './build-plan.js';
import type { BuilderContext } from './context.js';
import type { Controller } from './controller.js';
import type { ImageProvider, ImageProviders } from './image-providers.js';
import { uploadImage } from './image-upload.js';
import { buildToUpload, isFinal } from './upload-plan.js';
import { nextUpload } from './upload-queue.js';

/** Delays (ms) between attempts to upload an image to a provider. */
const BACK_OFF = { firstMs: 30_000, longestMs: 1_800_000 } as const;
/** Maximum delay (ms) until an upload is reconciled again after another builder took the lock first. */
const LOCKED_RETRY_MS = 5000;

/** An image and a provider; at most one upload of them runs in this builder. */
interface Target {
  readonly image: string;
  readonly provider: string;
}

interface Progress {
  readonly build: string;
  upload: string | undefined;
  sentBytes: number;
  totalBytes: number;
}

export class UploadController implements Controller {
  private config: NodepoolConfig | undefined;
  /** One object per target, because the queue compares its keys by identity. */
  private readonly targets = new Map<string, Target>();
  private readonly queue: WorkQueue<Target>;
  private readonly uploads = new Map<Target, Progress>();
  /**
   * Builds whose file for a provider does not exist: deleted after the uploads (`delete-after-upload`), or by an
   * operator. By provider, because the image of another provider may disappear later.
   */
  private readonly withoutFile = new Set<string>();

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
    /** Maximum of parallel uploads. */
    readonly workers: number,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: ({ image, provider }) => `upload image ${image} to provider ${provider}`,
      about: ({ image, provider }) => ({ image, provider }),
      backOff: BACK_OFF,
      select: (due, running) => this.select(due, running),
      reconcile: (target, run) => this.reconcile(target, run),
      onFailure: (target, error, retry) => this.failed(target, error, retry),
    });
  }

  /** Applies a new configuration; running uploads continue with the old one. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.addAll();
  }

  addAll(): void {
    for (const image of this.config?.diskImages.keys() ?? []) this.changed(image);
  }

  /** Reconciles the uploads of an image that changed. */
  changed(image: string): void {
    if (this.config?.diskImages.has(image) !== true) return;
    for (const provider of this.config.providers.keys()) this.queue.add(this.targetOf(image, provider));
  }

  get queueLength(): number {
    return this.queue.activity().due.filter((target) => this.buildFor(target) !== undefined).length;
  }

  activity(): readonly UploadActivity[] {
    return this.queue.activity().running.flatMap(({ key, ageMs }) => {
      const progress = this.uploads.get(key);
      return progress === undefined ? [] : [{ image: key.image, provider: key.provider, ...progress, ageMs }];
    });
  }

  /** Returns true if files of the build are being read. */
  isReading({ image, id }: Pick<ImageBuild, 'image' | 'id'>): boolean {
    return [...this.uploads].some(([target, { build }]) => target.image === image && build === id);
  }

  idle(): Promise<void> {
    return this.queue.idle();
  }

  stop(): void {
    this.queue.close();
  }

  abort(reason: Error): void {
    this.queue.abort(reason);
  }

  private targetOf(image: string, provider: string): Target {
    const key = `${provider}/${image}`;
    let target = this.targets.get(key);
    if (target === undefined) this.targets.set(key, (target = { image, provider }));
    return target;
  }

  /** Returns the build to upload; undefined if there is none. */
  private buildFor({ image, provider }: Target): ImageBuild | undefined {
    const { store, builderId } = this.context;
    const config = this.providers.get(provider)?.config;
    if (config === undefined || !store.complete) return undefined;
    const build = buildToUpload(store.images, config, image, builderId);
    const isGone = build !== undefined && this.withoutFile.has(fileKeyOf(build, config));
    return isGone ? undefined : build;
  }

  private select(due: readonly DueKey<Target>[], running: ReadonlySet<Target>): Selection<Target> {
    const needless = due.find(({ key }) => this.buildFor(key) === undefined);
    if (needless !== undefined) return { next: needless.key };
    const byProvider = new Map<string, number>();
    for (const { provider } of running) byProvider.set(provider, (byProvider.get(provider) ?? 0) + 1);
    const waiting = due.map(({ key, since }) => ({ key, provider: key.provider, since }));
    const { next, againMs } = nextUpload(waiting, byProvider, this.workers, this.context.clock.monotonic());
    return { next: next?.key, againMs };
  }

  private async reconcile(target: Target, run: Reconciliation): Promise<Reconciled> {
    const { image, provider: name } = target;
    const build = this.buildFor(target);
    const provider = this.providers.get(name);
    if (build === undefined || provider === undefined) return 'done';
    const release = provider.use();
    const progress: Progress = { build: build.id, upload: undefined, sentBytes: 0, totalBytes: 0 };
    this.uploads.set(target, progress);
    try {
      const place = { image, build: build.id, provider: name };
      const lock = await this.context.store.images.tryLockUploading(place, { signal: run.signal });
      if (lock === undefined) return { requeueAfterMs: LOCKED_RETRY_MS };
      try {
        await this.upload(lock, build, provider, progress, run);
      } finally {
        await lock.release();
      }
      return { requeueAfterMs: 0 };
    } finally {
      this.uploads.delete(target);
      release();
    }
  }

  private async upload(
    lock: UploadingLock,
    build: ImageBuild,
    provider: ImageProvider,
    progress: Progress,
    { signal, task }: Reconciliation,
  ): Promise<void> {
    const { store, files, log } = this.context;
    await store.images.syncCache({ signal: lock.lock.lost });
    if (!this.isStillDue(build, provider)) return;
    const format = provider.config.imageFormat ?? '';
    const file = await files.find(build, format);
    if (file === undefined) {
      await this.requestBuildIfGone(lock, signal);
      this.withoutFile.add(fileKeyOf(build, provider.config));
      log.warn('The file of a build no longer exists; the provider gets the image with its next build', {
        ...{ image: build.image, build_id: build.id, provider: provider.config.name },
        file: `${files.basePath(build)}.${format}`,
      });
      return;
    }
    progress.totalBytes = file.bytes;
    await uploadImage(this.context, lock, { build, file, provider }, signal, {
      started: (upload) => {
        progress.upload = upload;
        task.waitingFor(`upload ${upload} of build ${build.id}`);
      },
      progress: (sentBytes, totalBytes) => {
        progress.sentBytes = sentBytes;
        progress.totalBytes = totalBytes;
      },
    });
  }

  /** Requests a build if an image no longer exists in the cloud and cannot be uploaded again. */
  private async requestBuildIfGone({ image, build, provider }: UploadingLock, signal: AbortSignal): Promise<void> {
    const { images } = this.context.store;
    const isGone = [...images.uploads({ image, build, provider })].some(
      ({ state, listed }) => state === 'ready' && listed === false,
    );
    if (isGone) await images.requestBuild(image, { signal });
  }

  /** Returns true if the build is still to be uploaded. Called under the lock. */
  private isStillDue(build: ImageBuild, { config }: ImageProvider): boolean {
    const { images } = this.context.store;
    if (newestReadyBuild(images, build.image)?.id !== build.id) return false;
    const uploads = [...images.uploads({ image: build.image, build: build.id, provider: config.name })];
    return !uploads.some(isFinal);
  }

  private failed({ image, provider }: Target, error: unknown, retry: Retry | undefined): void {
    const { log } = this.context;
    if (retry === undefined) {
      log.warn('An upload was aborted because the builder is stopping', { image, provider });
      return;
    }
    const seconds = retry.waitMs / 1000;
    log.error('An image could not be uploaded; retrying', error, { image, provider, seconds });
  }
}

function fileKeyOf({ image, id }: ImageBuild, { name, imageFormat = '' }: ProviderConfig): string {
  return `${name}/${image}-${id}.${imageFormat}`;
}
