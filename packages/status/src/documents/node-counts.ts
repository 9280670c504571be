/** Numbers of nodes by group of states, in total, by provider and by label. */

import { LAUNCHING_STATES, type NodeState } from '@nodepool/core';
import type { CountsBy, NodeTally } from '../metrics/node-tally.js';
import type { GroupCounts, NodeGroup } from '../client/model.js';

const GROUPS: Readonly<Record<NodeGroup, readonly NodeState[]>> = {
  building: LAUNCHING_STATES,
  ready: ['ready'],
  'in use': ['in-use'],
  held: ['hold'],
  leaving: ['used', 'deleting', 'deleted'],
  failed: ['failed', 'aborted'],
};

/** The groups, in the order in which a node passes through them. */
export const NODE_GROUPS = ['building', 'ready', 'in use', 'held', 'leaving', 'failed'] as const;

export class NodeCounts {
  constructor(private readonly tally: NodeTally) {}

  groups(): GroupCounts {
    return groupsOf(this.tally.all, '');
  }

  groupsOf(provider: string): GroupCounts {
    return groupsOf(this.tally.byProvider, provider);
  }

  groupsOfLabel(label: string): GroupCounts {
    return groupsOf(this.tally.byLabel, label);
  }

  /** Returns the labels that have nodes. */
  labels(): Iterable<string> {
    return this.tally.byLabel.keys();
  }

  /** Returns the providers that have nodes. */
  providers(): Iterable<string> {
    return this.tally.byProvider.keys();
  }
}

function groupsOf(counts: CountsBy, key: string): GroupCounts {
  return sums((state) => counts.get(key, state));
}

/** Returns the numbers by group of numbers by state. */
export function groupsOfStates(states: Readonly<Record<string, number>>): GroupCounts {
  return sums((state) => states[state] ?? 0);
}

function sums(count: (state: NodeState) => number): GroupCounts {
  const sum = (group: NodeGroup): number => GROUPS[group].reduce((total, state) => total + count(state), 0);
  return {
    building: sum('building'),
    ready: sum('ready'),
    'in use': sum('in use'),
    held: sum('held'),
    leaving: sum('leaving'),
    failed: sum('failed'),
  };
}
