/** Deallocates ready nodes whose request no longer exists. */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import type { QuotaLedger } from '../quota/quota-ledger.js';

export class DeletedRequests implements Controller {
  /** Nodes to deallocate, by id. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    private readonly ledger: QuotaLedger,
    /** Returns true if this launcher serves the provider. */
    private readonly serves: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (id) => `deallocate node ${id}`,
      about: (id) => ({ node_id: id, node_request_id: store.nodes.get(id)?.node.allocated_to }),
      reconcile: (id) => this.reconcile(id),
    });
    this.unsubscribe = [
      store.requests.onChange(({ id, after }) => {
        if (after !== undefined) return;
        for (const entry of store.nodes.allocatedTo(id)) this.consider(entry);
      }),
      store.nodes.onChange(({ after }) => {
        if (after?.node.state === 'ready') this.consider(after);
      }),
      store.onComplete((complete) => {
        if (complete) this.apply();
      }),
    ];
    if (store.complete) this.apply();
  }

  /** Checks all ready nodes again, since this launcher may serve further providers. */
  apply(): void {
    for (const entry of this.context.store.nodes.inState('ready')) this.consider(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private consider(entry: NodeEntry): void {
    if (this.deletedRequest(entry) !== undefined) this.queue.add(entry.id);
  }

  /** Returns the request of an unlocked ready node of this launcher's providers, if the cache lacks that request. */
  private deletedRequest({ node, locked }: NodeEntry): string | undefined {
    const { store } = this.context;
    const { state, allocated_to: requestId, provider } = node;
    if (state !== 'ready' || locked || requestId === null || !store.complete) return undefined;
    if (provider === null || !this.serves(provider) || store.requests.get(requestId) !== undefined) return undefined;
    return requestId;
  }

  private async reconcile(id: string): Promise<Reconciled> {
    const { store, log } = this.context;
    const entry = store.nodes.get(id);
    const requestId = entry && this.deletedRequest(entry);
    if (entry === undefined || requestId === undefined) return 'done';
    // The caches of requests and nodes are independent: only a fresh read proves that the request no longer exists.
    if ((await store.requests.read(requestId)) !== undefined) return 'done';
    const handle = await store.nodes.tryLock(id, { from: entry, change: this.ledger.changeToFree(entry.node) });
    if (handle === undefined) return 'done';
    await handle.release();
    log.info('Deallocated a ready node whose request was removed', { node_id: id, node_request_id: requestId });
    return 'done';
  }
}
