/** Numbers of nodes by state and by another property, e.g. the provider. */

import type { Node, NodeState } from '@nodepool/core';

type Counts = Map<NodeState, number>;

export class CountsBy {
  private readonly counts = new Map<string, Counts>();

  add(key: string, state: NodeState, amount: number): void {
    let counts = this.counts.get(key);
    if (counts === undefined) this.counts.set(key, (counts = new Map<NodeState, number>()));
    const count = (counts.get(state) ?? 0) + amount;
    if (count === 0) counts.delete(state);
    else counts.set(state, count);
    if (counts.size === 0) this.counts.delete(key);
  }

  get(key: string, state: NodeState): number {
    return this.counts.get(key)?.get(state) ?? 0;
  }

  /** Returns the keys with at least one node. */
  keys(): Iterable<string> {
    return this.counts.keys();
  }
}

/** Returns true if both records of a node have the state, the provider and the labels that are counted. */
export function isCountedAlike(a: Node, b: Node): boolean {
  if (a.state !== b.state || a.provider !== b.provider || a.type.length !== b.type.length) return false;
  return a.type.every((label, index) => label === b.type[index]);
}
