/** Backing nodes that one label gives up for another one, because their common pools are full. Pure functions. */

import type { Node } from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { unplacedUsers } from './demand.js';
import { launchedAt, type Backing } from './slots.js';

/**
 * Time for which a launch waits before another label gives up a backing node for it, and for which each label has a new
 * backing node for itself, milliseconds: all labels that wait get their turn.
 */
const YIELD_AFTER_MS = 60_000;

export interface YieldState {
  readonly settings: ReadonlyMap<string, BackingSettings>;
  readonly backings: readonly Backing[];
  readonly users: readonly Node[];
  /** Returns true if the backing node gets further nodes as far as its own state decides. */
  readonly isUsable: (backing: Backing) => boolean;
  /** Returns the largest number of nodes with a backing label. */
  readonly capacityOf: (backingLabel: string) => number;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Yielding {
  /** Ids of the backing nodes that get no further nodes, and are released without any. */
  readonly nodes: ReadonlySet<string>;
  /** Unix milliseconds at which further launches have waited long enough; `Infinity` if there are none. */
  readonly nextAt: number;
}

/**
 * Chooses one backing node for each backing label whose nodes all belong to other labels than that of a launch which
 * has waited long: the one that may go first, which remains the choice until it is released.
 */
export function yielding({ settings, backings, users, isUsable, capacityOf, now }: YieldState): Yielding {
  const nodes = new Set<string>();
  let nextAt = Infinity;
  const byBackingLabel = new Map<string, string[]>();
  for (const [label, { backingLabel }] of settings) {
    byBackingLabel.set(backingLabel, [...(byBackingLabel.get(backingLabel) ?? []), label]);
  }
  for (const [backingLabel, labels] of byBackingLabel) {
    if (labels.length < 2) continue;
    const held = backings.filter(({ data }) => labels.includes(data.label));
    // A node that gets no further nodes makes room soon.
    if (held.length < capacityOf(backingLabel) || !held.every(isUsable)) continue;
    const having = new Set(held.map(({ data }) => data.label));
    const keptUntil = (each: Backing): number =>
      Math.max(
        launchedAt(each) * 1000 + (settings.get(each.data.label)?.minRetentionMs ?? 0),
        // It became the label's own when its state last changed.
        each.held.node.state_time * 1000 + YIELD_AFTER_MS,
      );
    const [oldest] = held.toSorted((a, b) => keptUntil(a) - keptUntil(b) || (a.id < b.id ? -1 : 1));
    if (oldest === undefined) continue;
    for (const { type, created_time: created, state_time: since } of unplacedUsers(users, backings)) {
      const [label = ''] = type;
      if (having.has(label) || !labels.includes(label)) continue;
      const dueAt = Math.max((created ?? since) * 1000 + YIELD_AFTER_MS, keptUntil(oldest));
      if (dueAt > now) nextAt = Math.min(nextAt, dueAt);
      else nodes.add(oldest.id);
    }
  }
  return { nodes, nextAt };
}
