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
