/**
 * Requeues pending requests whose launcher died. A pool that serves such a request normally takes it over; if no pool
 * has done so for a while (some launchers accept only `requested` requests), the request is set back to `requested`.
 */

import type { Change, NodeEntry, NodeHandle, PoolComponentData, RequestEntry } from '@nodepool/store';
import { isPoolAt, LostOwnershipError, RequestGoneError } from '@nodepool/store';
import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import type { QuotaLedger } from '../quota/quota-ledger.js';
import { isUnfinished, resumableNodes } from '../deletion/node-lifecycle.js';

/** Time for a pool to take over a lost request, in milliseconds; checked again after each interval. */
const TAKEOVER_MS = 60_000;
/** Longest wait for a pool to take over a lost request with resumable launches, in milliseconds. */
const MAX_TAKEOVER_MS = 300_000;

export class LostRequests implements Controller {
  /** Lost requests, by id. */
  private readonly queue: WorkQueue<string>;
  /** Times at which requests lost their launcher, in `Clock.monotonic` milliseconds. */
  private readonly lostSince = new Map<string, number>();
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    private readonly ledger: QuotaLedger,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (id) => `requeue lost request ${id}`,
      about: (id) => ({ node_request_id: id }),
      reconcile: (id) => this.reconcile(id),
    });
    this.unsubscribe = [
      store.requests.onChange(this.consider),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
    ];
    if (store.complete) this.addAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private addAll(): void {
    for (const entry of this.context.store.requests.inState('pending')) this.consider({ id: entry.id, after: entry });
  }

  private readonly consider = ({ id, after }: Pick<Change<RequestEntry>, 'id' | 'after'>): void => {
    if (!isLost(after)) {
      this.lostSince.delete(id);
      this.queue.remove(id);
    } else if (!this.lostSince.has(id)) {
      this.lostSince.set(id, this.context.clock.monotonic());
      this.queue.add(id, TAKEOVER_MS);
    }
  };

  private async reconcile(id: string): Promise<Reconciled> {
    const { store, clock } = this.context;
    const entry = store.requests.get(id);
    const since = this.lostSince.get(id);
    if (!isLost(entry) || since === undefined) return 'done';
    const again = { requeueAfterMs: TAKEOVER_MS };
    if (!store.complete || !store.components.complete) return again;
    // Requeuing the request would discard its launches.
    const resumable = resumableNodes(store, entry.request).some(
      (node) => this.hasPool(node) && isUnfinished(node.node),
    );
    if (resumable && clock.monotonic() - since < MAX_TAKEOVER_MS) return again;
    await this.requeue(entry);
    return again;
  }

  private hasPool({ node }: NodeEntry): boolean {
    const { components } = this.context.store;
    const isItsPool = (pool: PoolComponentData): boolean => isPoolAt(pool, node);
    return components.returningPools().some(({ pool }) => isItsPool(pool)) || [...components.pools()].some(isItsPool);
  }

  private async requeue(entry: RequestEntry): Promise<void> {
    const { store, log, decisions } = this.context;
    const accepted = await store.requests.accept(entry, { create: [], reuse: [] });
    if (accepted === undefined) return;
    const kept: NodeHandle[] = [];
    try {
      for (const node of store.nodes.allocatedTo(entry.id)) {
        if (node.node.state !== 'ready') continue;
        const handle = await store.nodes.tryLock(node.id, { from: node });
        if (handle !== undefined) kept.push(handle);
      }
      await accepted.request.release(
        { state: 'requested' },
        kept.map((handle) => ({ handle, change: this.ledger.changeToFree(handle.node) })),
      );
      decisions.record(
        'request',
        entry.id,
        'clean-up',
        'requeued',
        'its launcher has ended and no pool has taken it over',
      );
      log.info('Requeued a lost request: no pool has taken it over', {
        node_request_id: entry.id,
        event_id: entry.request.event_id,
      });
    } catch (error) {
      // The requestor or another launcher has changed the request meanwhile.
      if (!(error instanceof RequestGoneError) && !(error instanceof LostOwnershipError)) throw error;
    } finally {
      for (const { lock } of [accepted.request, ...kept]) void lock.release();
    }
  }
}

function isLost(entry: RequestEntry | undefined): entry is RequestEntry {
  return entry?.request.state === 'pending' && !entry.locked;
}
