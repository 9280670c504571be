/** Builds the images that need it, several at once, the most urgent first. Woken by what happens to images, and by their age. */

import { setMaxListeners } from 'node:events';
import { requiredFormats, type NodepoolConfig } from '@nodepool/config';
import type { BuildingLock } from '@nodepool/store';
import type { TaskHandle } from '@nodepool/core';
import type { BuildActivity } from './activity.js';
import { Agenda } from './agenda.js';
import { BackOff } from './back-off.js';
import { decideBuild, urgencyOf, type BuildDecision, type BuildReason } from './build-plan.js';
import { caughtUp } from './caught-up.js';
import { unixSeconds, type BuilderContext } from './context.js';
import { BuildFailedError } from './disk-image-creator.js';
import { Idle } from './idle.js';
import { buildImage } from './image-build.js';

/** Between attempts to build an image, milliseconds. */
const BACK_OFF = { firstMs: 60_000, longestMs: 3_600_000 } as const;
/** When another builder took the lock first, it is looked again after so long at the latest. */
const FASTER_OTHER_MS = 5000;

interface Running {
  readonly startedAt: number;
  build: string | undefined;
}

export class BuildWorker {
  private config: NodepoolConfig | undefined;
  private readonly agenda: Agenda;
  private readonly backOff: BackOff;
  private readonly running = new Map<string, Running>();
  /** Images that could be built, and why. */
  private readonly due = new Map<string, BuildReason>();
  private readonly stopping = new AbortController();
  private readonly idleness = new Idle(() => this.running.size);
  private closed = false;

  constructor(
    private readonly context: BuilderContext,
    /** Builds at once. */
    readonly workers: number,
  ) {
    const { clock, random } = context;
    this.agenda = new Agenda(clock, (image) => this.consider(image));
    this.backOff = new BackOff(clock, random, BACK_OFF);
    setMaxListeners(0, this.stopping.signal);
  }

  /** Goes on with another configuration; builds that run go on with theirs. */
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

  isBuilding(image: string): boolean {
    return this.running.has(image);
  }

  activity(): readonly BuildActivity[] {
    const now = this.context.clock.monotonic();
    return [...this.running].map(([image, { build, startedAt }]) => ({ image, build, ageMs: now - startedAt }));
  }

  /** Resolves once none of them runs. */
  idle(): Promise<void> {
    return this.idleness.wait();
  }

  /** Begins no further builds. */
  close(): void {
    this.closed = true;
    this.agenda.clear();
    this.due.clear();
  }

  /** Ends the builds that run. */
  abort(reason: Error): void {
    this.close();
    this.stopping.abort(reason);
  }

  private consider(image: string): void {
    this.due.delete(image);
    if (this.closed || !this.context.store.complete || this.running.has(image)) return;
    const decision = this.decide(image);
    if (decision.kind === 'later') this.agenda.after(image, decision.at * 1000 - this.context.clock.now());
    if (decision.kind !== 'build' || this.context.store.images.isBuilding(image)) return;
    const waitMs = this.waitMs(image);
    if (waitMs > 0) {
      this.agenda.after(image, waitMs);
      return;
    }
    this.due.set(image, decision.reason);
    this.fill();
  }

  private decide(image: string): BuildDecision {
    const { config } = this;
    if (config === undefined) return { kind: 'never', why: 'there is no configuration' };
    return decideBuild({
      image: config.diskImages.get(image),
      formats: requiredFormats(config, image),
      store: this.context.store.images,
      now: unixSeconds(this.context),
    });
  }

  /** A wish of an operator that came after the last failure does not wait. */
  private waitMs(image: string): number {
    const failedAt = this.backOff.lastFailureAt(image);
    const requestedAt = this.context.store.images.buildRequestedAt(image);
    if (failedAt !== undefined && requestedAt !== undefined && requestedAt * 1000 > failedAt) return 0;
    return this.backOff.remainingMs(image);
  }

  private fill(): void {
    const byUrgency = [...this.due].sort(([, a], [, b]) => urgencyOf(a) - urgencyOf(b));
    for (const [image] of byUrgency) {
      if (this.closed || this.running.size >= this.workers) return;
      this.due.delete(image);
      this.begin(image);
    }
  }

  private begin(image: string): void {
    const running: Running = { startedAt: this.context.clock.monotonic(), build: undefined };
    this.running.set(image, running);
    this.context.tasks.run(
      `build image ${image}`,
      async (task) => {
        const tried = await this.tryBuild(image, running, task);
        this.running.delete(image);
        // Whoever was faster is heard of, unless that was told while we tried.
        if (!this.closed) this.agenda.after(image, tried ? 0 : FASTER_OTHER_MS);
        this.fill();
        this.idleness.ended();
      },
      { image },
    );
  }

  /** False: somebody else was faster. Never rejects. */
  private async tryBuild(image: string, running: Running, task: TaskHandle): Promise<boolean> {
    const { store } = this.context;
    let lock: BuildingLock | undefined;
    try {
      lock = await store.images.tryLockBuilding(image, { signal: this.stopping.signal });
      if (lock !== undefined) {
        await this.build(image, lock, running, task);
        this.backOff.succeeded(image);
      }
    } catch (error) {
      this.failed(image, error);
    }
    await lock?.release();
    return lock !== undefined;
  }

  private async build(image: string, lock: BuildingLock, running: Running, task: TaskHandle): Promise<void> {
    const { store, log } = this.context;
    await caughtUp(store, lock.lock.lost);
    const decision = this.decide(image);
    const { config } = this;
    const diskImage = config?.diskImages.get(image);
    if (decision.kind !== 'build' || config === undefined || diskImage === undefined) return;
    const plan = { image: diskImage, formats: requiredFormats(config, image), elementsDir: config.elementsDir };
    log.info('Building an image', { image, formats: plan.formats, because: decision.reason });
    await buildImage(this.context, lock, plan, this.stopping.signal, (build) => {
      running.build = build;
      task.waitingFor(`build ${build}`);
    });
  }

  private failed(image: string, error: unknown): void {
    const { log } = this.context;
    if (this.stopping.signal.aborted) {
      log.warn('A build was ended, because the builder stops', { image });
      return;
    }
    const seconds = this.backOff.failed(image) / 1000;
    const failure = error instanceof BuildFailedError ? error.failure : undefined;
    log.error('An image could not be built; it is tried again', error, { image, failure, seconds });
  }
}
