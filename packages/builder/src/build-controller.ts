/** Builds the images that need it, several in parallel, the most urgent first; after changes of images and by age. */

import { requiredFormats, type NodepoolConfig } from '@nodepool/config';
import type { BuildingLock } from '@nodepool/store';
import type { DueKey, Reconciled, Reconciliation, Retry, Selection } from '@nodepool/core';
import { WorkQueue } from '@nodepool/core';
import type { BuildActivity } from './activity.js';
import { decideBuild, urgencyOf, type BuildDecision } from './build-plan.js';
import { unixSeconds, type BuilderContext } from './context.js';
import type { Controller } from './controller.js';
import { BuildFailedError } from './disk-image-creator.js';
import { buildImage } from './image-build.js';

/** Delays (ms) between attempts to build an image. */
const BACK_OFF = { firstMs: 60_000, longestMs: 3_600_000 } as const;
/** Interval (ms) between looks at the file of an image that another program makes. */
const SOURCE_POLL_MS = 30_000;
/** Maximum delay (ms) until an image is reconciled again after another builder took the lock first. */
const LOCKED_RETRY_MS = 5000;

export class BuildController implements Controller {
  private config: NodepoolConfig | undefined;
  /** Queue of images. */
  private readonly queue: WorkQueue<string>;
  /** The identities of the sources of images that other programs make, as last seen. */
  private readonly sources = new Map<string, string | undefined>();
  /** Ids of the builds in progress, by image. */
  private readonly builds = new Map<string, string>();
  /** Images whose last build failed, each with the time of the request that was pending then. */
  private readonly failedRequests = new Map<string, number | undefined>();

  constructor(
    private readonly context: BuilderContext,
    /** Maximum of parallel builds. */
    readonly workers: number,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: (image) => `build image ${image}`,
      about: (image) => ({ image }),
      backOff: BACK_OFF,
      select: (due, running) => this.select(due, running),
      reconcile: (image, run) => this.reconcile(image, run),
      onFailure: (image, error, retry) => this.failed(image, error, retry),
    });
  }

  /** Applies a new configuration; running builds continue with the old one. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.addAll();
  }

  addAll(): void {
    for (const image of this.config?.diskImages.keys() ?? []) this.queue.add(image);
  }

  /** Reconciles an image that changed. An operator's request that is newer than the last failure ends its back-off. */
  changed(image: string): void {
    if (this.config?.diskImages.has(image) !== true) return;
    const requestedAt = this.context.store.images.buildRequestedAt(image);
    // The times are ZooKeeper's, whose clock may differ from this builder's: they identify requests.
    const isNew = requestedAt !== undefined && requestedAt !== this.failedRequests.get(image);
    if (isNew && this.failedRequests.delete(image)) {
      this.queue.forgetFailures(image);
    }
    this.queue.add(image);
  }

  isBuilding(image: string): boolean {
    return this.queue.isRunning(image);
  }

  activity(): readonly BuildActivity[] {
    return this.queue.activity().running.map(({ key, ageMs }) => ({ image: key, build: this.builds.get(key), ageMs }));
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

  private select(due: readonly DueKey<string>[], running: ReadonlySet<string>): Selection<string> {
    if (running.size >= this.workers) return { next: undefined };
    const urgency = (image: string): number => {
      const decision = this.decide(image);
      return decision.kind === 'build' ? urgencyOf(decision.reason) : -1;
    };
    const [first] = due.map(({ key }) => ({ key, urgency: urgency(key) })).sort((a, b) => a.urgency - b.urgency);
    return { next: first?.key };
  }

  private decide(image: string): BuildDecision {
    const { config, context } = this;
    if (config === undefined) return { kind: 'never', why: 'there is no configuration' };
    if (!context.store.complete) return { kind: 'never', why: 'the records are not known yet' };
    return decideBuild({
      image: config.diskImages.get(image),
      formats: requiredFormats(config, image),
      store: context.store.images,
      source: this.sources.get(image),
      now: unixSeconds(context),
    });
  }

  private async reconcile(image: string, run: Reconciliation): Promise<Reconciled> {
    const { images } = this.context.store;
    await this.lookAtSource(image);
    const decision = this.decide(image);
    if (decision.kind === 'never' && this.config?.diskImages.get(image)?.source?.path !== undefined)
      return { requeueAfterMs: SOURCE_POLL_MS };
    if (decision.kind === 'later') return { requeueAfterMs: decision.at * 1000 - this.context.clock.now() };
    if (decision.kind === 'never' || images.isBuilding(image)) return 'done';
    const lock = await images.tryLockBuilding(image, { signal: run.signal });
    if (lock === undefined) return { requeueAfterMs: LOCKED_RETRY_MS };
    try {
      await this.build(image, lock, run);
    } finally {
      this.builds.delete(image);
      await lock.release();
    }
    this.failedRequests.delete(image);
    return { requeueAfterMs: 0 };
  }

  private async lookAtSource(image: string): Promise<void> {
    const source = this.config?.diskImages.get(image)?.source;
    if (source === undefined) this.sources.delete(image);
    else this.sources.set(image, await this.context.sources.identity(source));
  }

  private async build(image: string, lock: BuildingLock, { signal, task }: Reconciliation): Promise<void> {
    const { store, log } = this.context;
    await store.images.syncCache({ signal: lock.lock.lost });
    const decision = this.decide(image);
    const { config } = this;
    const diskImage = config?.diskImages.get(image);
    if (decision.kind !== 'build' || config === undefined || diskImage === undefined) return;
    const plan = { image: diskImage, formats: requiredFormats(config, image), elementsDir: config.elementsDir };
    log.info('Building an image', { image, formats: plan.formats, because: decision.reason });
    await buildImage(this.context, lock, plan, signal, (build) => {
      this.builds.set(image, build);
      task.waitingFor(`build ${build}`);
    });
  }

  private failed(image: string, error: unknown, retry: Retry | undefined): void {
    const { log, store } = this.context;
    if (retry === undefined) {
      log.warn('A build was aborted because the builder is stopping', { image });
      return;
    }
    this.failedRequests.set(image, store.images.buildRequestedAt(image));
    const failure = error instanceof BuildFailedError ? error.failure : undefined;
    log.error('An image could not be built; retrying', error, {
      ...{ image, failure, seconds: retry.waitMs / 1000 },
    });
  }
}
