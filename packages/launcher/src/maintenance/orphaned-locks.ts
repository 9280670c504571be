/** Lock directories of requests that are gone. Requestors delete a request without looking at its lock. */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Removed in one go, so that a thousand finished requests do not cost a thousand round trips. */
const BATCH = 100;
/** The only key: all locks are removed together. */
const LOCKS = 'locks';

export class OrphanedLocks implements Controller {
  private readonly queue: WorkQueue<typeof LOCKS>;
  private readonly unsubscribe: (() => void)[];

  constructor(private readonly context: LauncherContext) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: () => 'remove orphaned request locks',
      reconcile: () => this.reconcile(),
    });
    this.unsubscribe = [
      store.requests.onChange(({ after }) => {
        if (after === undefined) this.queue.add(LOCKS);
      }),
      store.onComplete((complete) => {
        if (complete) this.queue.add(LOCKS);
      }),
    ];
    this.queue.add(LOCKS);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private async reconcile(): Promise<Reconciled> {
    const { store } = this.context;
    if (!store.complete) return 'done';
    const orphans = [...store.requests.orphanedLocks()];
    for (let i = 0; i < orphans.length; i += BATCH) {
      await store.requests.removeOrphanedLocks(orphans.slice(i, i + BATCH));
    }
    return 'done';
  }
}
