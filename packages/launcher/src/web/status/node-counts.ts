/** Numbers of nodes by state, in total, by provider and by label. The counts follow record changes. */

import type { Node, NodeState } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { CountsBy, isCountedAlike } from '../../diagnostics/metrics/counts-by.js';
import type { GroupCounts, NodeGroup } from './client/model.js';

const GROUPS: Readonly<Record<NodeGroup, readonly NodeState[]>> = {
  building: ['init', 'building', 'testing'],
  ready: ['ready'],
  'in use': ['in-use'],
  held: ['hold'],
  leaving: ['used', 'deleting', 'deleted'],
  failed: ['failed', 'aborted'],
};

/** The groups, in the order in which a node passes through them. */
export const NODE_GROUPS = ['building', 'ready', 'in use', 'held', 'leaving', 'failed'] as const;

export class NodeCounts {
  private readonly byProvider = new CountsBy();
  private readonly byLabel = new CountsBy();
  private readonly all = new CountsBy();
  private unsubscribe: (() => void) | undefined;

  constructor(private readonly store: Pick<Store, 'nodes'>) {}

  /** Starts to follow the records. */
  start(): void {
    const { nodes } = this.store;
    for (const { node } of nodes.all()) this.count(node, 1);
    this.unsubscribe = nodes.onChange(({ before, after }) => {
      if (before !== undefined && after !== undefined && isCountedAlike(before.node, after.node)) return;
      if (before !== undefined) this.count(before.node, -1);
      if (after !== undefined) this.count(after.node, 1);
    });
  }

  stop(): void {
    this.unsubscribe?.();
  }

  /** Returns the numbers of all nodes. */
  groups(): GroupCounts {
    return groupsOf(this.all, '');
  }

  groupsOf(provider: string): GroupCounts {
    return groupsOf(this.byProvider, provider);
  }

  groupsOfLabel(label: string): GroupCounts {
    return groupsOf(this.byLabel, label);
  }

  /** Returns the labels that have nodes. */
  labels(): Iterable<string> {
    return this.byLabel.keys();
  }

  /** Returns the providers that have nodes. */
  providers(): Iterable<string> {
    return this.byProvider.keys();
  }

  private count({ state, provider, type }: Node, amount: number): void {
    this.all.add('', state, amount);
    for (const label of type) this.byLabel.add(label, state, amount);
    if (provider !== null) this.byProvider.add(provider, state, amount);
  }
}

function groupsOf(counts: CountsBy, key: string): GroupCounts {
  return {
    building: count(counts, key, 'building'),
    ready: count(counts, key, 'ready'),
    'in use': count(counts, key, 'in use'),
    held: count(counts, key, 'held'),
    leaving: count(counts, key, 'leaving'),
    failed: count(counts, key, 'failed'),
  };
}

function count(counts: CountsBy, key: string, group: NodeGroup): number {
  return GROUPS[group].reduce((sum, state) => sum + counts.get(key, state), 0);
}

/** Returns the numbers by group of numbers by state. */
export function groupsOfStates(states: Readonly<Record<string, number>>): GroupCounts {
  const sum = (group: NodeGroup): number => GROUPS[group].reduce((total, state) => total + (states[state] ?? 0), 0);
  return {
    building: sum('building'),
    ready: sum('ready'),
    'in use': sum('in use'),
    held: sum('held'),
    leaving: sum('leaving'),
    failed: sum('failed'),
  };
}
