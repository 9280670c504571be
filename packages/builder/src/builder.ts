/**
 * The builder: registers itself, runs its controllers, and passes on changes of images and of the configuration. The
 * controllers and their plans make the decisions.
 */

import { isDeepStrictEqual } from 'node:util';
import { requiredFormats, type NodepoolConfig } from '@nodepool/config';
import { silentMetrics } from '@nodepool/core';
import type { ComponentData, ComponentHandle, WebEndpoint } from '@nodepool/store';
import type { BuilderActivity } from './activity.js';
import type { BuilderContext, BuilderOptions } from './context.js';
import { createControllers, type BuilderControllers } from './controllers.js';
import { ImageProviders } from './image-providers.js';
import { reportBuilder, reportEarlierBuilds } from './report-metrics.js';

const BUILD_WORKERS = 1;
const UPLOAD_WORKERS = 4;
/** Interval (ms) between log lines of an ongoing stop. */
const LOG_INTERVAL_MS = 60_000;

export class Builder {
  private readonly context: BuilderContext;
  private readonly providers: ImageProviders;
  private readonly controllers: BuilderControllers;
  private component: ComponentHandle<ComponentData> | undefined;
  private config: NodepoolConfig | undefined;
  private wasComplete = false;
  private ends: (() => void)[] = [];

  constructor(options: BuilderOptions) {
    const context: BuilderContext = { metrics: silentMetrics, ...options };
    this.context = context;
    this.providers = new ImageProviders(context, () => this.addAll());
    const { buildWorkers = BUILD_WORKERS, uploadWorkers = UPLOAD_WORKERS } = options;
    this.controllers = createControllers(context, this.providers, { build: buildWorkers, upload: uploadWorkers });
  }

  /** Returns the current work, for the stack dump. */
  activity(): BuilderActivity {
    const { builds, uploads, cleanup } = this.controllers;
    return {
      builds: builds.activity(),
      uploads: uploads.activity(),
      uploadsWaiting: uploads.queueLength,
      cleanups: cleanup.activity(),
      providers: this.providers.activity(),
    };
  }

  /** Registers, with its web endpoint if there is one, and starts to work. The store must have been started. */
  start(config: NodepoolConfig, webapp?: WebEndpoint): void {
    const { store, hostname, version } = this.context;
    this.component = store.components.register<ComponentData>({
      hostname,
      kind: 'builder',
      state: 'running',
      version,
      model_api: 0,
      images: buildable(config),
      ...(webapp === undefined ? {} : { webapp }),
    });
    this.ends = [
      store.images.onChange((image) => this.changed(image)),
      store.onComplete((complete) => {
        if (complete) this.readAll();
      }),
      reportBuilder(this.context, {
        config: () => this.config,
        activity: () => this.activity(),
        workers: { build: this.controllers.builds.workers, upload: this.controllers.uploads.workers },
      }),
    ];
    this.apply(config);
  }

  /** Applies a new configuration; running work continues with the old one. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.providers.apply(config);
    for (const controller of this.controllers.all) controller.apply?.(config);
    this.warnOfUnbuildable(config);
    this.publish(buildable(config));
  }

  /** Starts nothing new, waits for running builds and uploads (logged: it may take hours), and unregisters. */
  async stop(): Promise<void> {
    this.close();
    const { clock, log } = this.context;
    const logWork = (): void => {
      const { builds, uploads } = this.activity();
      if (builds.length + uploads.length === 0) return;
      log.info('Stopping; waiting for running builds and uploads, a second signal aborts them', {
        builds: builds.map(({ image, ageMs }) => ({ image, seconds: Math.round(ageMs / 1000) })),
        uploads: uploads.map(({ image, provider, sentBytes, totalBytes }) => ({
          image,
          provider,
          sent_bytes: sentBytes,
          bytes: totalBytes,
        })),
      });
      timer = clock.schedule(LOG_INTERVAL_MS, logWork, { background: true });
    };
    let timer = clock.schedule(0, logWork, { background: true });
    await Promise.all([this.controllers.builds.idle(), this.controllers.uploads.idle()]);
    timer.cancel();
    await this.providers.stop();
    await this.component?.close();
    await this.context.tasks.idle();
  }

  /** Aborts running work, so that a waiting `stop` continues. The next builder cleans up incomplete work. */
  abort(): void {
    const reason = new Error('the builder is stopping at once');
    this.close();
    this.controllers.builds.abort(reason);
    this.controllers.uploads.abort(reason);
  }

  private close(): void {
    for (const end of this.ends) end();
    this.ends = [];
    for (const controller of this.controllers.all) controller.stop(new Error('the builder is stopping'));
  }

  private changed(image: string): void {
    for (const controller of this.controllers.all) controller.changed?.(image);
  }

  /** Called when all records are known. */
  private readAll(): void {
    if (!this.wasComplete && this.config !== undefined) reportEarlierBuilds(this.context, this.config);
    this.wasComplete = true;
    this.addAll();
  }

  private addAll(): void {
    for (const controller of this.controllers.all) controller.addAll?.();
  }

  private publish(images: readonly string[]): void {
    const { component } = this;
    if (component === undefined || isDeepStrictEqual(component.component.images, images)) return;
    this.context.tasks.run('publish the images that are built', () => component.update({ images }));
  }

  private warnOfUnbuildable(config: NodepoolConfig): void {
    for (const { name, abstract, pause } of config.diskImages.values()) {
      if (abstract || pause || requiredFormats(config, name).length > 0) continue;
      this.context.log.warn('A disk image is not built: no provider lists it, and it has no formats', { image: name });
    }
  }
}

/** Returns the names of the images that a builder with this configuration builds. */
function buildable(config: NodepoolConfig): readonly string[] {
  return [...config.diskImages.values()]
    .filter(({ name, abstract, pause }) => !abstract && !pause && requiredFormats(config, name).length > 0)
    .map(({ name }) => name)
    .sort();
}
