/**
 * Releases backing nodes of providers that were removed from the configuration of all launchers, once none of the
 * provider's nodes exists. As long as one does, its slot may be in use.
 */

import { backingOwnersOf, providerOfBackingOwner, WorkQueue, type Reconciled } from '@nodepool/core';
import type { Change, ComponentEntry, NodeEntry, RequestEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Time for which no launcher has served the provider, in milliseconds. */
const GRACE_MS = 600_000;
/** Wait after a node could not be released, milliseconds. */
const RETRY_MS = 60_000;

export class AbandonedBacking implements Controller {
  /** Owners without a served provider. */
  private readonly queue: WorkQueue<string>;
  /** Ids of the backing nodes in use, of all owners. */
  private readonly backing = new Set<string>();
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
      store.nodes.onChange(this.nodeChanged),
      store.components.onChange(({ before, after }) => {
        if (providerOf(before) !== providerOf(after)) this.apply();
      }),
      store.onComplete((complete) => {
        if (complete) this.apply();
      }),
    ];
    for (const entry of store.nodes.inState('in-use')) this.track(entry);
    this.apply();
  }

  apply(): void {
    const { store } = this.context;
    if (!store.complete) return;
    for (const id of this.backing) {
      const entry = store.nodes.get(id);
      if (entry !== undefined) this.consider(entry);
    }
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private readonly nodeChanged = ({ id, before, after }: Change<NodeEntry>): void => {
    if (after === undefined) {
      this.backing.delete(id);
      // The last node of a removed provider may have been erased.
      if (!this.isConfigured(before?.node.provider ?? '')) this.apply();
      return;
    }
    const { user_data: data, state, requestor } = after.node;
    const known = before?.node;
    if (data !== known?.user_data || state !== known.state || requestor !== known.requestor) this.track(after);
    if (this.backing.has(id)) this.consider(after);
  };

  /** Remembers the node if it is a backing node in use. */
  private track({ id, node }: NodeEntry): void {
    if (node.state === 'in-use' && backingOwnersOf(node).length > 0) this.backing.add(id);
    else this.backing.delete(id);
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
    for (const id of [...this.backing]) {
      const node = store.nodes.get(id)?.node;
      if (node === undefined || !backingOwnersOf(node).includes(owner)) continue;
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

function providerOf(entry: ComponentEntry | undefined): string | undefined {
  return entry !== undefined && 'provider_name' in entry.component ? entry.component.provider_name : undefined;
}
