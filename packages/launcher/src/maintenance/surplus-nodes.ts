/**
 * Marks free ready nodes for deletion that a label has beyond its `min-ready` and that have been ready for longer than
 * its `max-idle-time`: their requests were withdrawn, or their requestors died before they locked the nodes. The oldest
 * nodes are deleted first, in the same order by all launchers, so that the label keeps `min-ready` nodes.
 */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { Change, NodeEntry } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

const NO_LABELS: readonly string[] = [];
/** Delay of the next check (ms) while another program has the lock of a surplus node. */
const RETRY_MS = 60_000;

export class SurplusNodes implements Controller {
  /** Labels to be checked, each when its oldest surplus node expires. */
  private readonly queue: WorkQueue<string>;
  /** Free ready nodes of all providers by label: the time (ms since the epoch) since when each is free, by id. */
  private readonly free = new Map<string, Map<string, number>>();
  private readonly unsubscribe: (() => void)[];
  private labels: NodepoolConfig['labels'] = new Map();

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if this launcher serves the provider, and launches nodes there. */
    private readonly launches: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (label) => `delete surplus nodes of label ${label}`,
      about: (label) => ({ label }),
      reconcile: (label) => this.reconcile(label),
    });
    this.unsubscribe = [
      store.nodes.onChange(this.nodeChanged),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
    ];
    // How long these nodes were allocated before is unknown.
    for (const entry of store.nodes.inState('ready')) this.add(entry, entry.node.state_time * 1000);
  }

  apply({ labels }: NodepoolConfig): void {
    this.labels = labels;
    this.addAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private addAll(): void {
    for (const label of this.free.keys()) this.queue.add(label);
  }

  private readonly nodeChanged = ({ id, before, after }: Change<NodeEntry>): void => {
    const was = labelsOf(before);
    if (after !== undefined && was === labelsOf(after)) return;
    for (const label of was) this.free.get(label)?.delete(id);
    if (after !== undefined) this.add(after, this.context.clock.now());
  };

  private add(entry: NodeEntry, since: number): void {
    for (const label of labelsOf(entry)) {
      const nodes = this.free.get(label) ?? new Map<string, number>();
      this.free.set(label, nodes.set(entry.id, since));
      this.queue.add(label);
    }
  }

  private async reconcile(label: string): Promise<Reconciled> {
    const { store, clock } = this.context;
    const maxIdleMs = this.labels.get(label)?.maxIdleMs ?? Infinity;
    const nodes = this.free.get(label);
    const surplus = this.surplusOf(label);
    if (nodes === undefined || surplus <= 0 || maxIdleMs === Infinity || !store.complete) return 'done';
    const oldest = [...nodes.keys()].flatMap((id) => store.nodes.get(id) ?? []).sort(byAge);
    let nextMs = Infinity;
    for (const entry of oldest.slice(0, surplus)) {
      if (!this.launches(entry.node.provider ?? '')) continue;
      const leftMs = (nodes.get(entry.id) ?? clock.now()) + maxIdleMs - clock.now();
      const isDeleted = leftMs <= 0 && (await this.deleteSurplus(label, entry));
      if (!isDeleted) nextMs = Math.min(nextMs, leftMs > 0 ? leftMs : RETRY_MS);
    }
    return nextMs === Infinity ? 'done' : { requeueAfterMs: nextMs };
  }

  /** Returns the number of free nodes of the label beyond its `min-ready`. */
  private surplusOf(label: string): number {
    return (this.free.get(label)?.size ?? 0) - Math.max(this.labels.get(label)?.minReady ?? 0, 0);
  }

  /** Marks the node for deletion. Resolves with false if it is locked, or if another label of the node needs it. */
  private async deleteSurplus(label: string, entry: NodeEntry): Promise<boolean> {
    const { store, log, decisions } = this.context;
    const { provider, state_time: stateTime, type } = entry.node;
    if (entry.locked || !type.every((each) => this.surplusOf(each) > 0)) return false;
    const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { state: 'deleting' } });
    if (handle === undefined) return false;
    const reason = 'no request needs it, and its label has min-ready nodes without it (max-idle-time)';
    decisions.record('node', entry.id, 'clean-up', 'to be deleted', reason);
    log.info('A ready node is not needed; deleting it', { node_id: entry.id, provider, label, since: stateTime });
    await handle.release();
    return true;
  }
}

/** Returns the labels that the node is free for. The same list for the same node, if it stays free. */
function labelsOf(entry: NodeEntry | undefined): readonly string[] {
  return entry?.node.state === 'ready' && entry.node.allocated_to === null ? entry.node.type : NO_LABELS;
}

/** Orders the oldest first, nodes of the same age by id. */
function byAge(a: NodeEntry, b: NodeEntry): number {
  return a.node.state_time - b.node.state_time || (a.id < b.id ? -1 : 1);
}
