/**
 * Counts the supply of labels with `min-ready`: nodes that are free or will be free, and requests for such nodes. A
 * node that is soon too old does not count, so that its replacement is requested in time. The counts follow record
 * changes, so that a look-up does not scan the records.
 */

import { LAUNCHING_STATES, MIN_READY_REQUESTOR, WorkQueue, type Node } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { NodeEntry, RequestEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import { agesOf } from './node-ages.js';

const NO_LABELS: readonly string[] = [];

/** A view of the nodes that no launcher serves any more. */
export interface AbandonedNodes {
  /** Returns true if no pool can hand out the node for the label. */
  isUnusable(node: Node, label: string): boolean;
  /** Calls the listener with a provider when results of `isUnusable` for its nodes have changed. */
  onChange(listener: (provider: string) => void): void;
}

export class MinReadySupply {
  /** Labels that a node or a request counts for, by its id; nodes and requests that count for no label are omitted. */
  private readonly nodes = new Map<string, readonly string[]>();
  private readonly requests = new Map<string, readonly string[]>();
  private readonly counts = new Map<string, number>();
  private readonly unsubscribe: (() => void)[];
  /** Ready nodes, each due when it no longer counts. */
  private readonly renewals: WorkQueue<string>;
  private config: Pick<NodepoolConfig, 'labels' | 'providers'> = { labels: new Map(), providers: new Map() };

  constructor(
    private readonly context: LauncherContext,
    /** Identifies nodes that no launcher serves any more; they are not counted, since they cannot be used. */
    private readonly abandoned: Pick<AbandonedNodes, 'isUnusable'>,
    /**
     * Called when the count of a label has changed. The count may change again before the end of the event loop turn.
     */
    private readonly onChange: (label: string) => void,
  ) {
    const { store } = context;
    this.renewals = new WorkQueue({
      ...context,
      name: (id) => `replace node ${id}, which is soon too old`,
      about: (id) => ({ node_id: id }),
      reconcile: (id) => {
        this.nodeChanged({ id, after: store.nodes.get(id) });
        return Promise.resolve('done');
      },
    });
    this.unsubscribe = [
      store.nodes.onChange(this.nodeChanged),
      store.requests.onChange(({ id, before, after }) => {
        this.count(this.requests, id, labelsOfRequest(after));
        // Nodes allocated to a deleted request are free, or will be.
        if (before === undefined || after === undefined) this.recount(store.nodes.allocatedTo(id));
      }),
    ];
    for (const entry of store.requests.all()) this.count(this.requests, entry.id, labelsOfRequest(entry));
    this.recount(store.nodes.all());
  }

  /** Returns the number of the label's nodes that are free or will be free without a further request. */
  of(label: string): number {
    return this.counts.get(label) ?? 0;
  }

  /** Applies changed ages of labels. */
  apply(config: NodepoolConfig): void {
    this.config = config;
    this.recount(this.context.store.nodes.inState('ready'));
  }

  /** Recounts the provider's nodes; to be called when a result of `abandoned` for it has changed. */
  providerChanged(provider: string): void {
    this.recount(this.context.store.nodes.ofProvider(provider));
  }

  close(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.renewals.close();
  }

  private recount(entries: Iterable<NodeEntry>): void {
    for (const after of entries) this.nodeChanged({ id: after.id, after });
  }

  private readonly nodeChanged = ({
    id,
    after,
  }: {
    readonly id: string;
    readonly after?: NodeEntry | undefined;
  }): void => {
    const isSupply = after !== undefined && this.isSupply(after) && this.isYoung(after);
    const labels = isSupply ? this.usableLabels(after.node) : NO_LABELS;
    if (labels.length > 0 || this.nodes.has(id)) this.count(this.nodes, id, labels);
  };

  private count(counted: Map<string, readonly string[]>, id: string, labels: readonly string[]): void {
    const before = counted.get(id) ?? NO_LABELS;
    if (before === labels || (before.length === 0 && labels.length === 0)) return;
    if (labels.length === 0) counted.delete(id);
    else counted.set(id, labels);
    for (const label of before) this.add(label, -1);
    for (const label of labels) this.add(label, 1);
  }

  private add(label: string, amount: number): void {
    const count = this.of(label) + amount;
    if (count === 0) this.counts.delete(label);
    else this.counts.set(label, count);
    this.onChange(label);
  }

  private usableLabels(node: Node): readonly string[] {
    const isUsable = (label: string): boolean => !this.abandoned.isUnusable(node, label);
    // The same array for the same node, so that its labels do not count as changed.
    return node.type.every(isUsable) ? node.type : node.type.filter(isUsable);
  }

  /** Returns false for a ready node that is soon too old; otherwise schedules its next count. */
  private isYoung({ id, node }: NodeEntry): boolean {
    if (node.state !== 'ready') return true;
    // Nodes of existing machines have no replacement.
    if (this.config.providers.get(node.provider ?? '')?.createsNodes === false) return true;
    const leftMs = agesOf(node, this.config.labels).renewedAt - this.context.clock.now();
    if (leftMs === Infinity) this.renewals.remove(id);
    else if (leftMs > 0) this.renewals.add(id, leftMs);
    return leftMs > 0;
  }

  private isSupply({ node, locked }: NodeEntry): boolean {
    const { state, allocated_to: request, provider } = node;
    if (provider === null) return false;
    if (state === 'ready') return request === null || this.context.store.requests.get(request) === undefined;
    // An unlocked node is about to be deleted. The launch of a locked one may continue after its request was withdrawn.
    return LAUNCHING_STATES.includes(state) && request === null && locked;
  }
}

function labelsOfRequest(entry: RequestEntry | undefined): readonly string[] {
  if (entry?.request.requestor !== MIN_READY_REQUESTOR || entry.request.state === 'failed') return NO_LABELS;
  return entry.request.node_types;
}
