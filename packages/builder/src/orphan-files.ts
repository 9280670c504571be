/**
 * Removes files of builds that have no record: what a builder left that died between the two, and what others gave up for
 * it. A disk tells nobody, so it is looked at from time to time.
 */

import { buildPath, type BuildRef } from '@nodepool/store';
import type { Timer } from '@nodepool/core';
import type { BuilderContext } from './context.js';

/** Between two looks at the disk, milliseconds. */
const INTERVAL_MS = 600_000;
/** What is without a record for so long is removed. */
const SETTLE_MS = 60_000;

export class OrphanFiles {
  /** When files without a record were first seen, `Clock.monotonic` milliseconds, by base path. */
  private seen: ReadonlyMap<string, number> = new Map();
  private timer: Timer | undefined;
  private readonly stopping = new AbortController();

  constructor(
    private readonly context: BuilderContext,
    /** Whether this builder makes or reads files of the build at the moment. */
    private readonly isInUse: (build: BuildRef) => boolean,
  ) {}

  start(): void {
    this.after(0);
  }

  stop(): void {
    this.timer?.cancel();
    this.stopping.abort(new Error('the builder stops'));
  }

  private after(delayMs: number): void {
    if (this.stopping.signal.aborted) return;
    const { clock, tasks } = this.context;
    const look = (): void => tasks.run('look for files without a record', () => this.round());
    this.timer = clock.schedule(delayMs, look, { background: true });
  }

  /** Never rejects. */
  private async round(): Promise<void> {
    let nextMs = INTERVAL_MS;
    try {
      if (this.context.store.complete) await this.sweep();
      if (this.seen.size > 0) nextMs = SETTLE_MS;
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      this.context.log.warn('The files of builds could not be looked through; it is tried again', { error });
    }
    this.after(nextMs);
  }

  private async sweep(): Promise<void> {
    const { files, clock, log } = this.context;
    const seen = new Map<string, number>();
    const now = clock.monotonic();
    for (const build of await files.list()) {
      if (await this.isNeeded(build)) continue;
      const path = files.basePath(build);
      const first = this.seen.get(path) ?? now;
      if (now - first < SETTLE_MS) {
        seen.set(path, first);
        continue;
      }
      log.info('Removing files of a build that has no record', { image: build.image, build_id: build.id });
      await files.remove(build);
    }
    this.seen = seen;
  }

  /** What the cache does not know is asked of the server: a record that cannot be read is one, too. */
  private async isNeeded(build: BuildRef): Promise<boolean> {
    const { store } = this.context;
    if (this.isInUse(build) || store.images.build(build) !== undefined) return true;
    const path = buildPath(build.image, build.id);
    const { signal } = this.stopping;
    await store.zooKeeper.sync(path, { signal });
    return (await store.zooKeeper.exists(path, { signal })) !== undefined;
  }
}
