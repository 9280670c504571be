/** Current and past numbers of nodes by state, for the status page. The counts follow record changes. */

import type { Clock, Node, NodeState, Timer } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { CountsBy } from '../../diagnostics/counts-by.js';
import type { GroupCounts, NodeGroup, NodeHistoryStatus } from './client/status.js';

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

const MAX_SAMPLES = 360;
const FIRST_INTERVAL_MS = 10_000;
/** Longest interval between samples, in milliseconds; with `MAX_SAMPLES` it covers about 32 hours. */
const LAST_INTERVAL_MS = 320_000;

export class NodeCounts {
  private readonly byProvider = new CountsBy();
  private readonly byLabel = new CountsBy();
  private readonly all = new CountsBy();
  private samples: NodeHistoryStatus['samples'] = [];
  private intervalMs = FIRST_INTERVAL_MS;
  private timer: Timer | undefined;
  private unsubscribe: (() => void) | undefined;

  constructor(
    private readonly store: Pick<Store, 'nodes' | 'complete'>,
    private readonly clock: Clock,
  ) {}

  /** Starts to follow the records and to take samples. */
  start(): void {
    const { nodes } = this.store;
    for (const { node } of nodes.all()) this.count(node, 1);
    this.unsubscribe = nodes.onChange(({ before, after }) => {
      if (before !== undefined) this.count(before.node, -1);
      if (after !== undefined) this.count(after.node, 1);
    });
    this.schedule();
  }

  stop(): void {
    this.unsubscribe?.();
    this.timer?.cancel();
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

  history(): NodeHistoryStatus {
    return { groups: NODE_GROUPS, samples: this.samples };
  }

  private count({ state, provider, type }: Node, amount: number): void {
    this.all.add('', state, amount);
    for (const label of type) this.byLabel.add(label, state, amount);
    if (provider !== null) this.byProvider.add(provider, state, amount);
  }

  private schedule(): void {
    const take = (): void => {
      this.sample();
      this.schedule();
    };
    this.timer = this.clock.schedule(this.intervalMs, take, { background: true });
  }

  /** Takes a sample. When the samples are too many, every second one is dropped and the interval doubles. */
  private sample(): void {
    // Counts of incomplete records would be misleading.
    if (!this.store.complete) return;
    const counts = NODE_GROUPS.map((group) => count(this.all, '', group));
    const samples = [...this.samples, { time: Math.round(this.clock.now() / 1000), counts }];
    if (samples.length <= MAX_SAMPLES) this.samples = samples;
    else if (this.intervalMs >= LAST_INTERVAL_MS) this.samples = samples.slice(1);
    else {
      this.intervalMs *= 2;
      this.samples = samples.filter((_, index) => index % 2 === 0);
    }
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
