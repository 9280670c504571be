/**
 * Deletes builds and uploads that are no longer needed, see `cleanup-plan.ts`. Reacts to changes of images and
 * providers. Each deletion is reconciled separately: a cloud that refuses or hangs delays only its own images.
 */

import type { NodepoolConfig } from '@nodepool/config';
import type { BuildRef } from '@nodepool/store';
import { Slots, WorkQueue, type ImageUpload, type Reconciled, type Reconciliation } from '@nodepool/core';
import type { CleanupActivity } from './activity.js';
import { LATER, removeBuild, removeUpload, type RemovalContext } from './cleanup-removals.js';
import { planCleanup, type BuildCleanup, type CleanupPlan, type Trimming } from './cleanup-plan.js';
import { unixSeconds, type BuilderContext } from './context.js';
import type { ImageProviders } from './image-providers.js';

/** Delays (ms) between attempts of the same deletion. */
const BACK_OFF = { firstMs: 10_000, longestMs: 600_000 } as const;
/** Maximum of parallel deletions per provider. */
const PER_PROVIDER = 4;

/** A deletion of a plan. */
interface Removal {
  readonly image: string;
  readonly reconcile: (run: Reconciliation) => Promise<Reconciled>;
}

export class CleanupController {
  private config: NodepoolConfig | undefined;
  /** Images whose cleanup is to be planned. */
  private readonly images: WorkQueue<string>;
  /** Deletions by the object they delete. */
  private readonly queue: WorkQueue<string>;
  private readonly removals = new Map<string, Removal>();
  private readonly places = new Map<string, Slots>();
  /** Builds without files that wait for the deletion of their uploads, and builds whose surplus files are deleted. */
  private readonly cleared = new Set<string>();
  private readonly removal: Omit<RemovalContext, 'signal'>;

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
    /** Returns true if this builder is reading files of the build. */
    private readonly isReading: (build: BuildRef) => boolean,
  ) {
    this.removal = { builder: context, lacking: new Map(), plan: (image) => this.plan(image) };
    this.images = new WorkQueue({
      ...context,
      name: (image) => `plan the cleanup of image ${image}`,
      about: (image) => ({ image }),
      reconcile: (image) => Promise.resolve(this.consider(image)),
    });
    this.queue = new WorkQueue({
      ...context,
      name: (what) => `remove ${what}`,
      about: (what) => ({ image: this.removals.get(what)?.image }),
      backOff: BACK_OFF,
      reconcile: (what, run) => this.remove(what, run),
      onFailure: (what, error, retry) => {
        if (retry === undefined) return;
        const fields = { what, error, seconds: retry.waitMs / 1000 };
        context.log.warn('A deletion failed; retrying', fields);
      },
    });
  }

  apply(config: NodepoolConfig): void {
    this.config = config;
    this.addAll();
  }

  /** Adds all images in ZooKeeper, including those that are no longer configured. */
  addAll(): void {
    for (const image of this.context.store.images.images()) this.images.add(image);
  }

  changed(image: string): void {
    this.images.add(image);
  }

  activity(): readonly CleanupActivity[] {
    return this.queue.activity().running.map(({ key, ageMs }) => ({ what: key, ageMs }));
  }

  /** Aborts running deletions; the next builder resumes them. */
  stop(reason: Error): void {
    this.images.abort(reason);
    this.queue.abort(reason);
  }

  private plan(image: string): CleanupPlan | undefined {
    const { config, context, isReading } = this;
    if (config === undefined || !context.store.complete) return undefined;
    const { store, builderId } = context;
    return planCleanup({ image, config, store: store.images, builderId, isReading, now: unixSeconds(context) });
  }

  private consider(image: string): Reconciled {
    const plan = this.plan(image);
    if (plan === undefined) return 'done';
    for (const { upload, why } of plan.uploads) this.addUpload(upload, why);
    for (const cleanup of plan.builds) this.addBuild(cleanup);
    for (const trimming of plan.trimmed) this.addTrimming(trimming);
    if (this.isLeftover(image, plan)) this.addLeftover(image);
    if (plan.again === undefined) return 'done';
    return { requeueAfterMs: plan.again * 1000 - this.context.clock.now() };
  }

  private addUpload(upload: ImageUpload, why: string): void {
    const { image, build, id, provider: name } = upload;
    // The image is planned again once the provider is ready.
    if (this.providers.get(name) === undefined) return;
    this.add(`upload ${id} of build ${build} of image ${image} to provider ${name}`, image, async ({ signal }) => {
      const provider = this.providers.get(name);
      if (provider === undefined) return 'done';
      const release = provider.use();
      try {
        return await this.placesOf(name).run(signal, () =>
          removeUpload({ ...this.removal, signal }, upload, why, provider),
        );
      } finally {
        release();
      }
    });
  }

  private addBuild(cleanup: BuildCleanup): void {
    const { build, files, record } = cleanup;
    const key = keyOf(build);
    const hasFiles = files && !this.cleared.has(key);
    if (build.state === 'deleting' && !hasFiles && !record) return;
    this.add(`build ${build.id} of image ${build.image}`, build.image, async ({ signal }) => {
      const { removal, filesRemoved } = await removeBuild({ ...this.removal, signal }, cleanup);
      if (filesRemoved) this.cleared.add(key);
      return removal;
    });
  }

  private addTrimming({ build, keep }: Trimming): void {
    if (this.cleared.has(trimmingKeyOf(build, keep))) return;
    this.add(`uploaded files of build ${build.id} of image ${build.image}`, build.image, async () => {
      const planned = this.plan(build.image)?.trimmed.find((trimming) => trimming.build.id === build.id);
      if (planned === undefined) return 'done';
      await this.context.files.remove(build, planned.keep);
      this.cleared.add(trimmingKeyOf(build, planned.keep));
      return 'done';
    });
  }

  /**
   * Returns true if only the failure of this builder's last build is left of an image that is no longer configured.
   * Other builders may still have the image, and marks of operators are for them.
   */
  private isLeftover(image: string, { configured }: CleanupPlan): boolean {
    const { store, fqdn } = this.context;
    const { images } = store;
    if (configured || images.builds(image).length > 0 || images.isBuilding(image)) return false;
    return images.lastBuildFailure(image)?.builder === fqdn && !images.paused(image) && !images.buildRequested(image);
  }

  private addLeftover(image: string): void {
    this.add(`record of image ${image}`, image, async ({ signal }) => {
      const { images } = this.context.store;
      await images.syncCache({ signal });
      const plan = this.plan(image);
      if (plan === undefined || !this.isLeftover(image, plan)) return 'done';
      this.context.log.info('Deleting the record of an image that is no longer configured', { image });
      return (await images.removeImage(image, { signal })) ? 'done' : LATER;
    });
  }

  /** Queues a deletion. Each attempt plans again before it deletes anything, because the plan may have changed. */
  private add(what: string, image: string, reconcile: Removal['reconcile']): void {
    this.removals.set(what, { image, reconcile });
    this.queue.add(what);
  }

  private async remove(what: string, run: Reconciliation): Promise<Reconciled> {
    const removal = this.removals.get(what);
    if (removal === undefined) return 'done';
    const result = await removal.reconcile(run);
    if (result === 'done') {
      this.removals.delete(what);
      this.images.add(removal.image);
    }
    return result;
  }

  private placesOf(provider: string): Slots {
    let places = this.places.get(provider);
    if (places === undefined) this.places.set(provider, (places = new Slots(PER_PROVIDER)));
    return places;
  }
}

function trimmingKeyOf(build: BuildRef, keep: readonly string[]): string {
  return `${keyOf(build)} ${keep.join(',')}`;
}

function keyOf({ image, id }: BuildRef): string {
  return `${image}-${id}`;
}
