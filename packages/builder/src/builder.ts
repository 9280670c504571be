/**
 * The builder: registers itself, runs its workers, tells them what happens to images, and follows changes of the
 * configuration. What is done is decided in the workers and their plans.
 */

import { requiredFormats, type NodepoolConfig } from '@nodepool/config';
import { silentMetrics } from '@nodepool/core';
import type { ComponentData, ComponentHandle } from '@nodepool/store';
import type { BuilderActivity } from './activity.js';
import { BuildWorker } from './build-worker.js';
import { CleanupWorker } from './cleanup-worker.js';
import type { BuilderContext, BuilderOptions } from './context.js';
import { ImagePresence } from './image-presence.js';
import { ImageProviders } from './image-providers.js';
import { OrphanFiles } from './orphan-files.js';
import { reportBuilder } from './report-metrics.js';
import { UploadWorker } from './upload-worker.js';

const BUILD_WORKERS = 1;
const UPLOAD_WORKERS = 4;
/** Between two lines that say what a stop waits for. */
const TELL_MS = 60_000;

export class Builder {
  private readonly context: BuilderContext;
  private readonly providers: ImageProviders;
  private readonly builds: BuildWorker;
  private readonly uploads: UploadWorker;
  private readonly cleanup: CleanupWorker;
  private readonly orphans: OrphanFiles;
  private readonly presence: ImagePresence;
  private component: ComponentHandle<ComponentData> | undefined;
  private config: NodepoolConfig | undefined;
  private ends: (() => void)[] = [];

  constructor(options: BuilderOptions) {
    const context: BuilderContext = { metrics: silentMetrics, ...options };
    this.context = context;
    this.providers = new ImageProviders(context, () => this.considerAll());
    this.builds = new BuildWorker(context, options.buildWorkers ?? BUILD_WORKERS);
    this.uploads = new UploadWorker(context, this.providers, options.uploadWorkers ?? UPLOAD_WORKERS);
    this.cleanup = new CleanupWorker(context, this.providers, (build) => this.uploads.isReading(build));
    this.presence = new ImagePresence(context, this.providers);
    this.orphans = new OrphanFiles(
      context,
      (build) => this.builds.isBuilding(build.image) || this.uploads.isReading(build),
    );
  }

  /** What it does, for the stack dump. */
  activity(): BuilderActivity {
    return {
      builds: this.builds.activity(),
      uploads: this.uploads.activity(),
      uploadsWaiting: this.uploads.queueLength,
      cleanups: this.cleanup.activity(),
      providers: this.providers.activity(),
    };
  }

  /** Joins the registry and starts to work. The store must have been started. */
  start(config: NodepoolConfig): void {
    const { store, hostname, version } = this.context;
    this.component = store.components.register<ComponentData>({
      hostname,
      kind: 'builder',
      state: 'running',
      version,
      model_api: 0,
    });
    this.ends = [
      store.images.onChange((image) => this.changed(image)),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
      reportBuilder(this.context, {
        config: () => this.config,
        activity: () => this.activity(),
        workers: { build: this.builds.workers, upload: this.uploads.workers },
      }),
    ];
    this.apply(config);
    this.orphans.start();
  }

  /** Goes on with another configuration; what runs goes on with the one that it began with. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.providers.apply(config);
    this.builds.apply(config);
    this.uploads.apply(config);
    this.cleanup.apply(config);
    this.presence.apply(config);
    this.warnOfUnbuildable(config);
  }

  /**
   * Begins nothing new, waits for builds and uploads that run, and leaves the registry. Says what it waits for: that may
   * take hours.
   */
  async stop(): Promise<void> {
    this.close();
    const { clock, log } = this.context;
    const tell = (): void => {
      const { builds, uploads } = this.activity();
      if (builds.length + uploads.length === 0) return;
      log.info('Stopping; waiting for builds and uploads to end, a second signal ends them', {
        builds: builds.map(({ image, ageMs }) => ({ image, seconds: Math.round(ageMs / 1000) })),
        uploads: uploads.map(({ image, provider, sentBytes, totalBytes }) => ({
          image,
          provider,
          sent_bytes: sentBytes,
          bytes: totalBytes,
        })),
      });
      timer = clock.schedule(TELL_MS, tell, { background: true });
    };
    let timer = clock.schedule(0, tell, { background: true });
    await Promise.all([this.builds.idle(), this.uploads.idle()]);
    timer.cancel();
    await this.providers.stop();
    await this.component?.close();
    await this.context.tasks.idle();
  }

  /** Ends what runs; a `stop` that waits for it goes on. What is half done is cleaned up by the next builder. */
  abort(): void {
    const reason = new Error('the builder was told to stop at once');
    this.close();
    this.builds.abort(reason);
    this.uploads.abort(reason);
  }

  private close(): void {
    for (const end of this.ends) end();
    this.ends = [];
    this.builds.close();
    this.uploads.close();
    this.orphans.stop();
    this.presence.stop();
    this.cleanup.stop();
  }

  private changed(image: string): void {
    this.builds.changed(image);
    this.uploads.changed(image);
    this.cleanup.changed(image);
  }

  private considerAll(): void {
    this.builds.considerAll();
    this.uploads.considerAll();
    this.cleanup.considerAll();
  }

  private warnOfUnbuildable(config: NodepoolConfig): void {
    for (const { name, abstract, pause } of config.diskImages.values()) {
      if (abstract || pause || requiredFormats(config, name).length > 0) continue;
      this.context.log.warn('A disk image is not built: no provider lists it, and it has no formats', { image: name });
    }
  }
}
