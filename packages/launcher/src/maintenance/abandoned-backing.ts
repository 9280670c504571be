/**
 * Releases backing nodes of providers that were removed from the configuration of all launchers, once none of the
 * provider's nodes exists. As long as one does, its slot may be in use.
 */

import { backingOwnersOf, providerOfBackingOwner, WorkQueue, type Reconciled } from '@nodepool/core';
import type { NodeEntry, RequestEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Time for which no launcher has served the provider, in milliseconds. */
const GRACE_MS = 600_000;
/** Wait after a node could not be released, milliseconds. */
const RETRY_MS = 60_000;

export class AbandonedBacking implements Controller {
  /** Owners without a served provider. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if the provider is in the configuration of this launcher. */
    private readonly isConfigured: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (owner) => `release backing nodes of ${owner}`,
      about: (owner) => ({ owner }),
      reconcile: (owner) => this.reconcile(owner),
    });
    this.unsubscribe = [
      store.nodes.onChange(({ before, after }) => {
        if (after !== undefined && after.node.user_data !== before?.node.user_data) this.consider(after);
        if (after === undefined) this.removed(before?.node.provider ?? '');
      }),
      store.components.onChange(() => this.apply()),
      store.onComplete((complete) => {
        if (complete) this.apply();
      }),
    ];
    this.apply();
  }

  apply(): void {
    if (!this.context.store.complete) return;
    for (const entry of this.context.store.nodes.inState('in-use')) this.consider(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  /** Looks at all backing nodes when the last node of a provider that is not configured here has been removed. */
  private removed(provider: string): void {
    if (!this.context.store.nodes.hasNodesOf(provider) && !this.isConfigured(provider)) this.apply();
  }

  private consider({ node, locked }: NodeEntry): void {
    if (!locked) return;
    for (const owner of backingOwnersOf(node)) {
      if (this.isAbandoned(owner)) this.queue.add(owner, GRACE_MS);
      else this.queue.remove(owner);
    }
  }

  private isAbandoned(owner: string): boolean {
    const provider = providerOfBackingOwner(owner);
    if (provider === undefined || this.isConfigured(provider)) return false;
    const { store } = this.context;
    for (const { provider_name: name } of store.components.pools()) if (name === provider) return false;
    return store.complete && !store.nodes.hasNodesOf(provider);
  }

  private async reconcile(owner: string): Promise<Reconciled> {
    const { store, log } = this.context;
    if (!this.isAbandoned(owner)) return 'done';
    const isTheirs = ({ request }: RequestEntry): boolean => request.requestor === owner;
    await store.requests.changeSet(owner, () => ({ create: [], remove: [...store.requests.all()].filter(isTheirs) }), {
      priority: 0,
    });
    let hasFailed = false;
    for (const { id, node } of [...store.nodes.inState('in-use')]) {
      if (!backingOwnersOf(node).includes(owner)) continue;
      try {
        await this.release(id, owner);
      } catch (error) {
        // The others are released all the same.
        log.warn('A backing node whose provider no launcher serves could not be released', { node_id: id, error });
        hasFailed = true;
      }
    }
    return hasFailed ? { requeueAfterMs: RETRY_MS } : 'done';
  }

  private async release(id: string, owner: string): Promise<void> {
    const { store, log } = this.context;
    // The record alone proves nothing: the owner must hold the lock.
    const handle = await store.nodes.adopt(id, owner, { takeOver: false });
    if (handle === undefined || handle.node.state !== 'in-use') return;
    await handle.unlock({ state: 'used' });
    log.warn('Released a backing node whose provider no launcher serves any more', { node_id: id, owner });
  }
}
