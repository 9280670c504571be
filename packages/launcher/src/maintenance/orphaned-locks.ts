/** Lock directories of requests that are gone. Requestors delete a request without looking at its lock. */

import type { Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** Removed in one go, so that a thousand finished requests do not cost a thousand round trips. */
const BATCH = 100;
/** After a failure that says nothing about when to try again. */
const RETRY_MS = 60_000;

export class OrphanedLocks {
  private readonly unsubscribe: (() => void)[];
  private running = false;
  private stopped = false;
  private again = false;
  private retry: Timer | undefined;

  constructor(private readonly context: LauncherContext) {
    const { store } = context;
    this.unsubscribe = [
      store.requests.onChange(({ after }) => {
        if (after === undefined) this.wake();
      }),
      store.onComplete((complete) => {
        if (complete) this.wake();
      }),
    ];
    this.wake();
  }

  stop(): void {
    this.retry?.cancel();
    this.stopped = true;
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  private wake(): void {
    this.again = true;
    if (this.running || this.stopped) return;
    this.running = true;
    this.context.tasks.run('remove orphaned request locks', () => this.run());
  }

  private async run(): Promise<void> {
    const { store, log, clock } = this.context;
    try {
      while (this.again && store.complete) {
        this.again = false;
        const orphans = [...store.requests.orphanedLocks()];
        for (let i = 0; i < orphans.length; i += BATCH) {
          await store.requests.removeOrphanedLocks(orphans.slice(i, i + BATCH));
        }
      }
    } catch (error) {
      log.warn('Locks of requests that are gone could not be removed; it is tried again', { error });
      this.retry?.cancel();
      if (!this.stopped) this.retry = clock.schedule(RETRY_MS, () => this.wake());
    } finally {
      this.running = false;
    }
  }
}
