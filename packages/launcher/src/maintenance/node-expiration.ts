/**
 * Marks nodes for deletion that have been held for longer than their `hold_expiration` or `max-hold-age`. Each node is
 * reconciled when it expires; there is no periodic scan.
 */

import { WorkQueue, type Node, type Reconciled } from '@nodepool/core';
import type { Change, NodeEntry } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import type { Precedence } from '../precedence/precedence.js';

/** Delay of the next check, in milliseconds, if the node still exists, e.g. because another program locked it first. */
const RETRY_MS = 60_000;

export class NodeExpiration implements Controller {
  /** Nodes that will expire, by id. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];
  private maxHoldAgeMs = Infinity;

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if this launcher serves the provider. */
    private readonly serves: (provider: string) => boolean,
    private readonly precedence: Pick<Precedence, 'waitForDeletion'>,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (id) => `delete expired node ${id}`,
      about: (id) => ({ node_id: id }),
      reconcile: (id) => this.reconcile(id),
    });
    this.unsubscribe = [
      store.nodes.onChange(this.schedule),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
    ];
  }

  apply({ maxHoldAgeMs }: NodepoolConfig): void {
    this.maxHoldAgeMs = maxHoldAgeMs;
    this.addAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private addAll(): void {
    const { nodes } = this.context.store;
    for (const after of nodes.inState('hold')) this.schedule({ id: after.id, after });
  }

  /** Schedules the node to be reconciled when it expires. */
  private readonly schedule = ({ id, after }: Pick<Change<NodeEntry>, 'id' | 'after'>): void => {
    const leftMs = this.leftMs(after);
    if (leftMs === Infinity) this.queue.remove(id);
    else this.queue.add(id, leftMs);
  };

  private async reconcile(id: string): Promise<Reconciled> {
    const entry = this.context.store.nodes.get(id);
    const leftMs = this.leftMs(entry);
    // All nodes are added again once the records are complete.
    if (entry === undefined || leftMs === Infinity || !this.context.store.complete) return 'done';
    // A change of the wall clock or of the limits can move the expiry.
    const waitMs = leftMs > 0 ? leftMs : this.precedence.waitForDeletion(entry);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.markForDeletion(entry);
    return { requeueAfterMs: RETRY_MS };
  }

  /** Returns the ms until the node expires; `Infinity` if it never does or another launcher deletes it. */
  private leftMs(entry: NodeEntry | undefined): number {
    if (entry === undefined || entry.locked) return Infinity;
    const { node } = entry;
    const expiry = this.expiry(node);
    if (expiry === Infinity || node.provider === null || !this.serves(node.provider)) return Infinity;
    return expiry - this.context.clock.now();
  }

  /** Returns the expiry of the node in milliseconds since the epoch; `Infinity` if it never expires. */
  private expiry(node: Node): number {
    return node.state === 'hold' ? node.state_time * 1000 + Math.min(holdAge(node), this.maxHoldAgeMs) : Infinity;
  }

  private async markForDeletion(entry: NodeEntry): Promise<void> {
    const { store, log, decisions } = this.context;
    const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { state: 'deleting' } });
    if (handle === undefined) return;
    const { state_time: since, provider } = entry.node;
    decisions.record('node', entry.id, 'clean-up', 'to be deleted', 'it is older than hold_expiration or max-hold-age');
    log.info('A node has been held for too long; deleting it', { node_id: entry.id, provider, since });
    await handle.release();
  }
}

/**
 * Returns the hold time that the requestor asked for, in milliseconds; `Infinity` if it is not positive. A number is
 * rounded down, and any other text than a whole number sets no limit, as with `int` of Python.
 */
function holdAge({ hold_expiration: seconds }: Node): number {
  const isWhole = typeof seconds === 'string' && /^\s*\+?\d+(?:_\d+)*\s*$/.test(seconds);
  const age = isWhole ? Number(seconds.replaceAll('_', '')) : seconds;
  return typeof age === 'number' && age >= 1 ? Math.trunc(age) * 1000 : Infinity;
}
