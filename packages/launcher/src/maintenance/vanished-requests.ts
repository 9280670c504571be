/** Ready nodes that are allocated to a request which no longer exists are free again. */

import type { NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { QuotaLedger } from '../quota/quota-ledger.js';

/** After a failure that says nothing about when to try again. */
const RETRY_MS = 60_000;

export class VanishedRequests {
  private readonly unsubscribe: (() => void)[];
  private readonly inProgress = new Set<string>();
  private stopped = false;

  constructor(
    private readonly context: LauncherContext,
    private readonly ledger: QuotaLedger,
    /** Whether nodes of this provider are ours to care for. */
    private readonly serves: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.unsubscribe = [
      store.requests.onChange(({ id, after }) => {
        if (after !== undefined) return;
        for (const entry of store.nodes.allocatedTo(id)) this.consider(entry);
      }),
      store.nodes.onChange(({ after }) => {
        if (after !== undefined) this.consider(after);
      }),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
    ];
    if (store.complete) this.considerAll();
  }

  stop(): void {
    this.stopped = true;
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  /** To be called when there may be more nodes to care for than before. */
  considerAll(): void {
    for (const entry of [...this.context.store.nodes.inState('ready')]) this.consider(entry);
  }

  private consider(entry: NodeEntry): void {
    const { store, tasks, log, clock } = this.context;
    const { state, allocated_to: requestId, provider } = entry.node;
    if (state !== 'ready' || entry.locked || requestId === null || !store.complete || this.stopped) return;
    if (provider === null || !this.serves(provider) || store.requests.get(requestId) !== undefined) return;
    if (this.inProgress.has(entry.id)) return;
    this.inProgress.add(entry.id);
    tasks.run(`deallocate node ${entry.id}`, async () => {
      try {
        // The cache of requests and that of nodes are two: only a fresh read tells that the request is gone.
        if ((await store.requests.read(requestId)) !== undefined) return;
        const handle = await store.nodes.tryLock(entry.id, { from: entry, change: this.ledger.freeing(entry.node) });
        if (handle === undefined) return;
        await handle.release();
        log.info('Deallocated a ready node whose request is gone', { node_id: entry.id, node_request_id: requestId });
      } catch (error) {
        const fields = { node_id: entry.id, node_request_id: requestId, error };
        log.warn('A node whose request is gone could not be deallocated; it is tried again', fields);
        clock.schedule(RETRY_MS, () => this.considerAll(), { background: true });
      } finally {
        this.inProgress.delete(entry.id);
      }
    });
  }
}
