/** Tracks since when instances have had no owner, as the cleanup of leaked instances judges it. */

import { isJsonObject } from '@nodepool/core';
import type { CloudInstance } from '@nodepool/driver-example';
import type { Observed } from '../observed.js';
import type { CheckerView } from './rule.js';

/**
 * An instance has no owner if its node has no record, or a record of another launch attempt. The date is kept if it
 * gets an owner again, because launchers may not have noticed.
 */
export class OwnerlessInstances {
  /** Milliseconds since the start, by instance id and attempt. */
  private readonly dates = new Map<string, number>();
  /** Keys of instances that had an owner at the last check. */
  private owned: ReadonlySet<string> = new Set();
  private lookedAt = 0;

  constructor(private readonly view: CheckerView) {}

  /** Called after every change of the records. */
  look(): void {
    const { cloud, observed } = this.view;
    const now = this.view.now();
    const owned = new Set<string>();
    for (const instance of cloud.existingInstances()) {
      const key = keyOf(instance);
      if (hasOwner(instance, observed)) owned.add(key);
      // A new instance may have existed since the last check.
      else if (!this.dates.has(key)) this.dates.set(key, this.owned.has(key) ? now : this.lookedAt);
    }
    this.owned = owned;
    this.lookedAt = now;
  }

  /** Returns how long the instance has had no owner (ms). */
  ageOf(instance: Pick<CloudInstance, 'id' | 'tags'>): number {
    this.look();
    return this.view.now() - (this.dates.get(keyOf(instance)) ?? this.view.now());
  }
}

/** A cloud may use ids again. */
function keyOf({ id, tags }: Pick<CloudInstance, 'id' | 'tags'>): string {
  return `${id} ${tags['nodepool_launch_attempt'] ?? ''}`;
}

function hasOwner({ id, tags }: CloudInstance, { nodes }: Observed): boolean {
  const node = nodes.get(tags['nodepool_node_id'] ?? '');
  if (node === undefined) return false;
  const { external_id: own, progress } = node.data;
  if (own === id) return true;
  if (!isJsonObject(progress) || progress['attempt'] !== tags['nodepool_launch_attempt']) return false;
  // Until the launch ends, its instance may be about to replace that of the previous attempt.
  return own === null || progress['kind'] === 'launch';
}
