/**
 * What there is of the labels that are kept ready, or is being made to be kept ready: nodes that are free or about to be,
 * and requests for such nodes. Counted as events come, so that a question costs nothing.
 */

import { MIN_READY_REQUESTOR } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';

const NO_LABELS: readonly string[] = [];

export class MinReadySupply {
  /** Labels that a node or a request counts for, by its id; those that count for none are left out. */
  private readonly nodes = new Map<string, readonly string[]>();
  private readonly requests = new Map<string, readonly string[]>();
  private readonly counts = new Map<string, number>();
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly store: Store,
    /** Whether nobody serves this provider any more: its nodes are of no use. */
    private readonly isAbandoned: (provider: string) => boolean,
    /** Called when the count of a label has changed. Others may follow before the end of the turn. */
    private readonly onChange: (label: string) => void,
  ) {
    this.unsubscribe = [
      store.nodes.onChange(({ id, after }) => this.count(this.nodes, id, this.labelsOfNode(after))),
      store.requests.onChange(({ id, before, after }) => {
        this.count(this.requests, id, labelsOfRequest(after));
        // Nodes that are allocated to a request that is gone are free, or will be.
        if (before === undefined || after === undefined) this.recount(store.nodes.allocatedTo(id));
      }),
    ];
    for (const entry of store.requests.all()) this.count(this.requests, entry.id, labelsOfRequest(entry));
    this.recount(store.nodes.all());
  }

  /** Nodes of the label that are ready, or will be without further ado. */
  of(label: string): number {
    return this.counts.get(label) ?? 0;
  }

  /** To be called when `isAbandoned` says something else of a provider. */
  providerChanged(provider: string): void {
    this.recount(this.store.nodes.ofProvider(provider));
  }

  close(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
  }

  private recount(entries: Iterable<NodeEntry>): void {
    for (const entry of entries) this.count(this.nodes, entry.id, this.labelsOfNode(entry));
  }

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

  private labelsOfNode(entry: NodeEntry | undefined): readonly string[] {
    return entry !== undefined && this.isSupply(entry) ? entry.node.type : NO_LABELS;
  }

  private isSupply({ node, locked }: NodeEntry): boolean {
    const { state, allocated_to: request, provider } = node;
    if (provider === null || this.isAbandoned(provider)) return false;
    switch (state) {
      case 'ready':
        return request === null || this.store.requests.get(request) === undefined;
      case 'init':
      case 'building':
      case 'testing':
        // Unlocked, it is about to be deleted. Another launcher may go on with a launch whose request was withdrawn.
        return request === null && locked;
      default:
        return false;
    }
  }
}

function labelsOfRequest(entry: RequestEntry | undefined): readonly string[] {
  if (entry?.request.requestor !== MIN_READY_REQUESTOR || entry.request.state === 'failed') return NO_LABELS;
  return entry.request.node_types;
}
