/** Numbers of nodes by state: of all nodes, by label and by provider. They follow the changes of records. */

import type { Node, NodeState } from '@nodepool/core';
import type { Change, NodeEntry, Store } from '@nodepool/store';

export class NodeTally {
  /** All nodes, with an empty key. */
  readonly all = new CountsBy();
  readonly byLabel = new CountsBy();
  readonly byProvider = new CountsBy();

  constructor(private readonly store: Pick<Store, 'nodes'>) {}

  /** Counts the present records and follows their changes until the returned function is called. */
  start(): () => void {
    const { nodes } = this.store;
    for (const { node } of nodes.all()) this.add(node, 1);
    return nodes.onChange((change) => this.changed(change));
  }

  private changed({ before, after }: Change<NodeEntry>): void {
    if (before !== undefined && after !== undefined && isCountedBySame(before.node, after.node)) {
      if (before.node.state !== after.node.state) this.move(after.node, before.node.state);
      return;
    }
    if (before !== undefined) this.add(before.node, -1);
    if (after !== undefined) this.add(after.node, 1);
  }

  private add({ state, type, provider }: Node, amount: number): void {
    this.all.add('', state, amount);
    type.forEach((label) => this.byLabel.add(label, state, amount));
    if (provider !== null) this.byProvider.add(provider, state, amount);
  }

  private move({ state, type, provider }: Node, before: NodeState): void {
    this.all.move('', before, state);
    type.forEach((label) => this.byLabel.move(label, before, state));
    if (provider !== null) this.byProvider.move(provider, before, state);
  }
}

/** Numbers of nodes by key and state. */
export class CountsBy {
  private readonly counts = new Map<string, Map<NodeState, number>>();

  add(key: string, state: NodeState, amount: number): void {
    let counts = this.counts.get(key);
    if (counts === undefined) this.counts.set(key, (counts = new Map<NodeState, number>()));
    change(counts, state, amount);
    if (counts.size === 0) this.counts.delete(key);
  }

  /** Counts a node of the key in another state. */
  move(key: string, before: NodeState, after: NodeState): void {
    const counts = this.counts.get(key);
    if (counts === undefined) return;
    change(counts, before, -1);
    change(counts, after, 1);
  }

  get(key: string, state: NodeState): number {
    return this.counts.get(key)?.get(state) ?? 0;
  }

  /** Returns the keys with at least one node. */
  keys(): Iterable<string> {
    return this.counts.keys();
  }
}

function change(counts: Map<NodeState, number>, state: NodeState, amount: number): void {
  const count = (counts.get(state) ?? 0) + amount;
  if (count === 0) counts.delete(state);
  else counts.set(state, count);
}

/** Returns true if both records of a node have the provider and the labels that are counted. */
function isCountedBySame(a: Node, b: Node): boolean {
  if (a.provider !== b.provider) return false;
  return a.type === b.type || (a.type.length === b.type.length && a.type.every((label, at) => label === b.type[at]));
}
