/**
 * Removes builds and uploads that nothing needs any more, as `cleanup-plan.ts` says. Woken by what happens to images and
 * providers. Each removal is a piece of work of its own: a cloud that refuses or hangs delays its own images only.
 */

import { setMaxListeners } from 'node:events';
import { GuardedCalls, isDriverError, Slots, TimerQueue, type ImageUpload } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { CleanupActivity } from './activity.js';
import { Agenda } from './agenda.js';
import { BackOff } from './back-off.js';
import { removeBuild, removeUpload, type RemovalContext } from './cleanup-removals.js';
import { planCleanup, type BuildCleanup, type CleanupPlan } from './cleanup-plan.js';
import { unixSeconds, type BuilderContext } from './context.js';
import type { ImageProviders } from './image-providers.js';

/** Between attempts to remove the same thing, milliseconds. */
const BACK_OFF = { firstMs: 10_000, longestMs: 600_000 } as const;
/** Removals at once per provider. */
const PER_PROVIDER = 4;

/** What a removal has come to. */
export type Removal = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

interface Running {
  readonly what: string;
  readonly startedAt: number;
}

export class CleanupWorker {
  private config: NodepoolConfig | undefined;
  private readonly agenda: Agenda;
  private readonly backOff: BackOff;
  private readonly running = new Map<string, Running>();
  private readonly places = new Map<string, Slots>();
  /** Builds that wait for their uploads to go, whose files are gone; and builds whose superfluous files are. */
  private readonly cleared = new Set<string>();
  private readonly stopping = new AbortController();
  private readonly removals: RemovalContext;

  constructor(
    private readonly context: BuilderContext,
    private readonly providers: ImageProviders,
    /** Whether this builder reads files of the build at the moment. */
    private readonly isReading: (build: BuildRef) => boolean,
  ) {
    const { clock, random } = context;
    this.agenda = new Agenda(clock, (image) => this.consider(image));
    this.backOff = new BackOff(clock, random, BACK_OFF);
    const { signal } = this.stopping;
    const calls = new GuardedCalls(new TimerQueue(clock));
    this.removals = { builder: context, calls, signal, lacking: new Map(), plan: (image) => this.plan(image) };
    setMaxListeners(0, signal);
  }

  /** Goes on with another configuration. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.considerAll();
  }

  /** Looks at all images that there are: what is not configured any more is known to ZooKeeper only. */
  considerAll(): void {
    for (const image of this.context.store.images.images()) this.agenda.soon(image);
  }

  /** Something has happened to the image. */
  changed(image: string): void {
    this.agenda.soon(image);
  }

  activity(): readonly CleanupActivity[] {
    const now = this.context.clock.monotonic();
    return [...this.running.values()].map(({ what, startedAt }) => ({ what, ageMs: now - startedAt }));
  }

  /** Ends what runs; it is taken up again by the next builder that looks. */
  stop(): void {
    this.agenda.clear();
    this.stopping.abort(new Error('the builder stops'));
  }

  private plan(image: string): CleanupPlan | undefined {
    const { config, context, isReading } = this;
    if (config === undefined || !context.store.complete) return undefined;
    const { store, builderId } = context;
    return planCleanup({ image, config, store: store.images, builderId, isReading, now: unixSeconds(context) });
  }

  private consider(image: string): void {
    if (this.stopping.signal.aborted) return;
    const plan = this.plan(image);
    if (plan === undefined) return;
    for (const { upload, why } of plan.uploads) this.considerUpload(upload, why);
    for (const cleanup of plan.builds) this.considerBuild(cleanup);
    for (const { build, keep } of plan.trimmed) this.trim(build, keep);
    if (plan.again !== undefined) this.agenda.after(image, plan.again * 1000 - this.context.clock.now());
  }

  private considerUpload(upload: ImageUpload, why: string): void {
    const provider = this.providers.get(upload.provider);
    // It is looked at again when the provider is there.
    if (provider === undefined) return;
    const { image, build, id } = upload;
    const what = `upload ${id} of build ${build} of image ${image} to provider ${upload.provider}`;
    this.attempt(what, image, async () => {
      const release = provider.use();
      try {
        return await this.placesOf(upload.provider).run(this.stopping.signal, () =>
          removeUpload(this.removals, upload, why, provider),
        );
      } finally {
        release();
      }
    });
  }

  private considerBuild(cleanup: BuildCleanup): void {
    const { build, files, record } = cleanup;
    const key = keyOf(build);
    const hasFiles = files && !this.cleared.has(key);
    if (build.state === 'deleting' && !hasFiles && !record) return;
    this.attempt(`build ${build.id} of image ${build.image}`, build.image, async () => {
      const { removal, filesRemoved } = await removeBuild(this.removals, cleanup);
      if (filesRemoved) this.cleared.add(key);
      return removal;
    });
  }

  private trim(build: BuildRef, keep: readonly string[]): void {
    const key = `${keyOf(build)} ${keep.join(',')}`;
    if (this.cleared.has(key)) return;
    this.attempt(`uploaded files of build ${build.id} of image ${build.image}`, build.image, async () => {
      if (!this.isReading(build)) {
        await this.context.files.remove(build, keep);
        this.cleared.add(key);
      }
      return { kind: 'done' };
    });
  }

  /** Does the work unless it is being done, or has failed a short while ago. */
  private attempt(what: string, image: string, work: () => Promise<Removal>): void {
    if (this.running.has(what)) return;
    const waitMs = this.backOff.remainingMs(what);
    if (waitMs > 0) {
      this.agenda.after(image, waitMs);
      return;
    }
    this.running.set(what, { what, startedAt: this.context.clock.monotonic() });
    this.context.tasks.run(
      `remove ${what}`,
      async () => {
        const afterMs = await this.tryWork(what, work);
        this.running.delete(what);
        if (!this.stopping.signal.aborted) this.agenda.after(image, afterMs);
      },
      { image },
    );
  }

  /** Milliseconds after which the image is to be looked at again. Never rejects. */
  private async tryWork(what: string, work: () => Promise<Removal>): Promise<number> {
    try {
      const removal = await work();
      this.backOff.succeeded(what);
      if (removal.kind === 'done') return 0;
      // Our own locks are news, too: what happens to the image meanwhile does not cut this short.
      this.backOff.postpone(what, removal.afterMs);
      return removal.afterMs;
    } catch (error) {
      if (this.stopping.signal.aborted) return 0;
      const afterMs = this.backOff.failed(what, isDriverError(error) ? error.retryAfterMs : undefined);
      this.context.log.warn('Something could not be removed; it is tried again', {
        what,
        error,
        seconds: afterMs / 1000,
      });
      return afterMs;
    }
  }

  private placesOf(provider: string): Slots {
    let places = this.places.get(provider);
    if (places === undefined) this.places.set(provider, (places = new Slots(PER_PROVIDER)));
    return places;
  }
}

function keyOf({ image, id }: BuildRef): string {
  return `${image}-${id}`;
}
