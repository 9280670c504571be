/** Lock directories of requests that are gone. Requestors delete a request without looking at its lock. */

import type { LauncherContext } from '../context.js';

/** Removed in one go, so that a thousand finished requests do not cost a thousand round trips. */
const BATCH = 100;

export class OrphanedLocks {
  private readonly unsubscribe: (() => void)[];
  private running = false;
  private again = false;

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
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  private wake(): void {
    this.again = true;
    if (this.running) return;
    this.running = true;
    this.context.tasks.run('remove orphaned request locks', () => this.run());
  }

  private async run(): Promise<void> {
    const { store } = this.context;
    try {
      while (this.again && store.complete) {
        this.again = false;
        const orphans = [...store.requests.orphanedLocks()];
        for (let i = 0; i < orphans.length; i += BATCH) {
          await store.requests.removeOrphanedLocks(orphans.slice(i, i + BATCH));
        }
      }
    } finally {
      this.running = false;
    }
  }
}
