/** Uploads new builds whose files this builder has, several at once. Woken by what happens to images and providers. */

import { setMaxListeners } from 'node:events';
import {
  GuardedCalls,
  isDriverError,
  isUsableUpload,
  TimerQueue,
  type ImageBuild,
  type TaskHandle,
} from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { UploadingLock } from '@nodepool/store';
import type { UploadActivity } from './activity.js';
import { Agenda } from './agenda.js';
import { BackOff } from './back-off.js';
import { newestReadyBuild } from './build-plan.js';
import { caughtUp } from './caught-up.js';
import type { BuilderContext } from './context.js';
import { Idle } from './idle.js';
import type { ImageProvider, ImageProviders } from './image-providers.js';
import { uploadImage } from './image-upload.js';
import { buildToUpload } from './upload-plan.js';
import { nextUpload, type Waiting } from './upload-queue.js';

/** Between attempts to upload an image to a provider, milliseconds. */
const BACK_OFF = { firstMs: 30_000, longestMs: 1_800_000 } as const;
/** When another builder took the lock first, it is looked again after so long at the latest. */
const FASTER_OTHER_MS = 5000;
const QUEUE = 'the queue';

/** An image and a provider; at most one upload of them runs here. */
interface Target extends Waiting {
  readonly key: string;
  readonly image: string;
}

interface Running extends Target {
  readonly startedAt: number;
  build: string;
  upload: string | undefined;
  sentBytes: number;
  totalBytes: number;
}

export class UploadWorker {
  private config: NodepoolConfig | undefined;
  private readonly agenda: Agenda;
  private readonly patience: Agenda;
  private readonly backOff: BackOff;
  private readonly calls: GuardedCalls;
  private readonly waiting = new Map<string, Target>();
  private readonly running = new Map<string, Running>();
  /** Builds whose file in a format is gone: after the uploads (`delete-after-upload`), or by hand. */
  private readonly withoutFile = new Set<string>();
  private readonly stopping = new AbortController();
  private readonly idleness = new Idle(() => this.running.size);
  private closed = false;

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
    /** Uploads at once. */
    readonly workers: number,
  ) {
    const { clock, random } = context;
    this.agenda = new Agenda(clock, (image) => this.consider(image));
    this.patience = new Agenda(clock, () => this.fill());
    this.backOff = new BackOff(clock, random, BACK_OFF);
    this.calls = new GuardedCalls(new TimerQueue(clock));
    setMaxListeners(0, this.stopping.signal);
  }

  /** Goes on with another configuration; uploads that run go on with theirs. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.considerAll();
  }

  considerAll(): void {
    for (const image of this.config?.diskImages.keys() ?? []) this.agenda.soon(image);
  }

  /** Something has happened to the image. */
  changed(image: string): void {
    if (this.config?.diskImages.has(image) === true) this.agenda.soon(image);
  }

  get queueLength(): number {
    return this.waiting.size;
  }

  activity(): readonly UploadActivity[] {
    const now = this.context.clock.monotonic();
    return [...this.running.values()].map(({ image, provider, build, upload, sentBytes, totalBytes, startedAt }) => ({
      ...{ image, provider, build, upload, sentBytes, totalBytes },
      ageMs: now - startedAt,
    }));
  }

  /** Whether files of the build are being read. */
  isReading({ image, id }: Pick<ImageBuild, 'image' | 'id'>): boolean {
    return [...this.running.values()].some((upload) => upload.image === image && upload.build === id);
  }

  /** Resolves once none of them runs. */
  idle(): Promise<void> {
    return this.idleness.wait();
  }

  /** Begins no further uploads. */
  close(): void {
    this.closed = true;
    this.agenda.clear();
    this.patience.clear();
    this.waiting.clear();
  }

  /** Ends the uploads that run. */
  abort(reason: Error): void {
    this.close();
    this.stopping.abort(reason);
  }

  private consider(image: string): void {
    if (this.closed || this.config === undefined || !this.context.store.complete) return;
    for (const provider of this.config.providers.keys()) this.considerTarget(image, provider);
    this.fill();
  }

  private considerTarget(image: string, provider: string): void {
    const key = `${provider}/${image}`;
    if (this.running.has(key)) return;
    if (this.buildFor(image, provider) === undefined) {
      this.waiting.delete(key);
      return;
    }
    const waitMs = this.backOff.remainingMs(key);
    if (waitMs > 0) this.agenda.after(image, waitMs);
    else if (!this.waiting.has(key)) {
      this.waiting.set(key, { key, image, provider, since: this.context.clock.monotonic() });
    }
  }

  private buildFor(image: string, provider: string): ImageBuild | undefined {
    const { store, builderId } = this.context;
    const config = this.providers.get(provider)?.config;
    if (config === undefined) return undefined;
    const build = buildToUpload(store.images, config, image, builderId);
    const isGone = build !== undefined && this.withoutFile.has(fileKeyOf(build, config.imageFormat ?? ''));
    return isGone ? undefined : build;
  }

  private fill(): void {
    while (!this.closed) {
      const running = new Map<string, number>();
      for (const { provider } of this.running.values()) running.set(provider, (running.get(provider) ?? 0) + 1);
      const now = this.context.clock.monotonic();
      const { next, againMs } = nextUpload(this.waiting.values(), running, this.workers, now);
      if (againMs !== undefined) this.patience.after(QUEUE, againMs);
      if (next === undefined) return;
      this.waiting.delete(next.key);
      this.begin(next);
    }
  }

  private begin(target: Target): void {
    const { image, provider: name, key } = target;
    const provider = this.providers.get(name);
    const build = this.buildFor(image, name);
    if (provider === undefined || build === undefined) return;
    const startedAt = this.context.clock.monotonic();
    const running: Running = { ...target, startedAt, build: build.id, upload: undefined, sentBytes: 0, totalBytes: 0 };
    this.running.set(key, running);
    const release = provider.use();
    this.context.tasks.run(
      `upload image ${image} to provider ${name}`,
      async (task) => {
        const tried = await this.tryUpload(build, provider, running, task);
        release();
        this.running.delete(key);
        if (!this.closed) this.agenda.after(image, tried ? 0 : FASTER_OTHER_MS);
        this.fill();
        this.idleness.ended();
      },
      { image, provider: name },
    );
  }

  /** False: somebody else was faster. Never rejects. */
  private async tryUpload(
    build: ImageBuild,
    provider: ImageProvider,
    running: Running,
    task: TaskHandle,
  ): Promise<boolean> {
    const place = { image: build.image, build: build.id, provider: provider.config.name };
    let lock: UploadingLock | undefined;
    try {
      lock = await this.context.store.images.tryLockUploading(place, { signal: this.stopping.signal });
      if (lock !== undefined) {
        await this.upload(lock, build, provider, running, task);
        this.backOff.succeeded(running.key);
      }
    } catch (error) {
      this.failed(running, error);
    }
    await lock?.release();
    return lock !== undefined;
  }

  private async upload(
    lock: UploadingLock,
    build: ImageBuild,
    provider: ImageProvider,
    running: Running,
    task: TaskHandle,
  ): Promise<void> {
    const { store, files, log } = this.context;
    await caughtUp(store, lock.lock.lost);
    if (!this.isStillDue(build, provider)) return;
    const format = provider.config.imageFormat ?? '';
    const file = await files.find(build, format);
    if (file === undefined) {
      this.withoutFile.add(fileKeyOf(build, format));
      await this.requestBuildIfGone(lock);
      log.warn('The file of a build is not there any more: the image reaches the provider with its next build', {
        ...{ image: build.image, build_id: build.id, provider: provider.config.name },
        file: `${files.basePath(build)}.${format}`,
      });
      return;
    }
    running.totalBytes = file.bytes;
    await uploadImage(this.context, lock, { build, file, provider, calls: this.calls }, this.stopping.signal, {
      begun: (upload) => {
        running.upload = upload;
        task.waitingFor(`upload ${upload} of build ${build.id}`);
      },
      progress: (sentBytes, totalBytes) => {
        running.sentBytes = sentBytes;
        running.totalBytes = totalBytes;
      },
    });
  }

  /** Requests a build if an image is gone from the cloud and cannot be uploaded again. */
  private async requestBuildIfGone({ image, build, provider }: UploadingLock): Promise<void> {
    const { images } = this.context.store;
    const isGone = [...images.uploads({ image, build, provider })].some(
      ({ state, listed }) => state === 'ready' && listed === false,
    );
    if (isGone) await images.requestBuild(image, { signal: this.stopping.signal });
  }

  /** Under the lock, which is ours: is it still the build to upload, and has nobody else uploaded it? */
  private isStillDue(build: ImageBuild, { config }: ImageProvider): boolean {
    const { images } = this.context.store;
    if (newestReadyBuild(images, build.image)?.id !== build.id) return false;
    const uploads = [...images.uploads({ image: build.image, build: build.id, provider: config.name })];
    return !uploads.some(isUsableUpload);
  }

  private failed({ key, image, provider }: Running, error: unknown): void {
    const { log } = this.context;
    if (this.stopping.signal.aborted) {
      log.warn('An upload was ended, because the builder stops', { image, provider });
      return;
    }
    const leastMs = isDriverError(error) ? error.retryAfterMs : undefined;
    const seconds = this.backOff.failed(key, leastMs) / 1000;
    log.error('An image could not be uploaded; it is tried again', error, { image, provider, seconds });
  }
}

function fileKeyOf({ image, id }: ImageBuild, format: string): string {
  return `${image}-${id}.${format}`;
}
