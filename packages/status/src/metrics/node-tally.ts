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
    return nodes.onChange(this.changed);
  }

  private readonly changed = ({ before, after }: Change<NodeEntry>): void => {
    const old = before?.node;
    const node = after?.node;
    // Only the lock has changed.
    if (old === node) return;
    if (old !== undefined && node !== undefined && isCountedBySame(old, node)) {
      if (old.state !== node.state) this.move(node, old.state);
      return;
    }
    if (old !== undefined) this.add(old, -1);
    if (node !== undefined) this.add(node, 1);
  };

  private add({ state, type, provider }: Node, amount: number): void {
    this.all.add('', state, amount);
    for (const label of type) this.byLabel.add(label, state, amount);
    if (provider !== null) this.byProvider.add(provider, state, amount);
  }

  private move({ state, type, provider }: Node, before: NodeState): void {
    this.all.move('', before, state);
    for (let index = 0; index < type.length; index += 1) this.byLabel.move(type[index] ?? '', before, state);
    if (provider !== null) this.byProvider.move(provider, before, state);
  }
}

/** The nodes of one key. */
interface Counts {
  readonly byState: Record<NodeState, number>;
  total: number;
}

/** Numbers of nodes by key and state. */
export class CountsBy {
  /** The keys with at least one node. */
  private readonly counts = new Map<string, Counts>();

  add(key: string, state: NodeState, amount: number): void {
    let counts = this.counts.get(key);
    if (counts === undefined) this.counts.set(key, (counts = { byState: { ...NO_NODES }, total: 0 }));
    counts.byState[state] += amount;
    counts.total += amount;
    if (counts.total === 0) this.counts.delete(key);
  }

  /** Counts a node of the key in another state. */
  move(key: string, before: NodeState, after: NodeState): void {
    const byState = this.counts.get(key)?.byState;
    if (byState === undefined) return;
    byState[before] -= 1;
    byState[after] += 1;
  }

  get(key: string, state: NodeState): number {
    return this.counts.get(key)?.byState[state] ?? 0;
  }

  /** Returns the keys with at least one node. */
  keys(): Iterable<string> {
    return this.counts.keys();
  }
}

const NO_NODES: Readonly<Record<NodeState, number>> = {
  init: 0,
  building: 0,
  testing: 0,
  ready: 0,
  'in-use': 0,
  used: 0,
  hold: 0,
  failed: 0,
  aborted: 0,
  deleting: 0,
  deleted: 0,
};

/** Returns true if both records of a node have the provider and the labels that are counted. */
function isCountedBySame(a: Node, b: Node): boolean {
  if (a.provider !== b.provider) return false;
  return a.type === b.type || (a.type.length === b.type.length && a.type.every((label, at) => label === b.type[at]));
}
