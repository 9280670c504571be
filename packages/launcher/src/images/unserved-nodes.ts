/**
 * Deletes free ready nodes whose image is rejected or revoked, or whose launch test was interrupted. No request gets
 * them, and new nodes replace them.
 */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import { deleteFreeNode } from '../deletion/delete-free-node.js';

/** Delay (ms) of the next attempt while another program has the lock of a node. */
const RETRY_MS = 10_000;

export class UnservedNodes implements Controller {
  /** Ids of nodes. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if this launcher serves the provider. */
    private readonly serves: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (id) => `delete node ${id} of an image that serves no requests`,
      about: (id) => ({ node_id: id }),
      reconcile: (id) => this.reconcile(id),
    });
    this.unsubscribe = [
      store.images.onChange(() => this.addAll()),
      store.nodes.onChange(({ after }) => {
        if (after !== undefined) this.consider(after);
      }),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
    ];
  }

  apply(): void {
    this.addAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private addAll(): void {
    const { images, nodes } = this.context.store;
    if (!images.hasUnserved) return;
    for (const entry of nodes.inState('ready')) this.consider(entry);
  }

  private consider(entry: NodeEntry): void {
    if (this.isUnserved(entry)) this.queue.add(entry.id);
  }

  private isUnserved({ node }: NodeEntry): boolean {
    if (node.state !== 'ready' || node.allocated_to !== null) return false;
    return !this.context.store.images.servesRequests(node.image_id) && this.serves(node.provider ?? '');
  }

  private async reconcile(id: string): Promise<Reconciled> {
    const { store, log } = this.context;
    const entry = store.nodes.get(id);
    if (entry === undefined || !store.complete || !this.isUnserved(entry)) return 'done';
    const reason = 'its image serves no requests';
    if (entry.locked || !(await deleteFreeNode(this.context, entry, 'image review', reason))) {
      return { requeueAfterMs: RETRY_MS };
    }
    const { provider, image_id: image } = entry.node;
    log.info('A ready node has an image that serves no requests; deleting it', {
      node_id: id,
      provider,
      image_id: image,
    });
    return 'done';
  }
}
