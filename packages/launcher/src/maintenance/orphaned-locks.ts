/** Deletes the lock directories of deleted requests: requestors delete a request without its lock directory. */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Lock directories deleted in one batch, to save round trips. */
const BATCH = 100;
/** The only key of the queue: all lock directories are deleted together. */
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
