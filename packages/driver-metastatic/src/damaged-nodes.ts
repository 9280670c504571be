/**
 * Backing nodes whose `user_data` is damaged. Their slots in use are those that their nodes record; a launch that had
 * received a slot records it only at its end. Therefore, such a node is not released before all launches that had no
 * slot elsewhere when the damage was noticed have ended or have received one.
 */

import { LAUNCHING_STATES, type BackingNodes, type Call, type Logger } from '@nodepool/core';
import type { Backing, PlacesByNode } from './slots.js';

export class DamagedNodes {
  /** Ids of nodes that may have a slot without a record of it, by backing node. */
  private readonly suspects = new Map<string, Set<string>>();

  constructor(
    private readonly backing: BackingNodes,
    private readonly log: Logger,
  ) {}

  /** Looks for damage, and ends suspicions. `state` returns the present backing nodes. */
  async review(
    state: () => { readonly backings: readonly Backing[]; readonly places: PlacesByNode },
    call: Call,
  ): Promise<void> {
    const isNew = state().backings.some(({ id, damage }) => damage !== undefined && !this.suspects.has(id));
    // A launch is recorded before it receives a slot, but the caches may not have its record yet.
    if (isNew) await this.backing.refresh(call);
    const { backings, places } = state();
    const damaged = new Map(backings.flatMap((each) => (each.damage === undefined ? [] : [[each.id, each]])));
    for (const id of this.suspects.keys()) if (!damaged.has(id)) this.suspects.delete(id);
    if (damaged.size === 0) return;
    const launching = new Set<string>();
    for (const { id, state: at } of this.backing.users()) {
      if (LAUNCHING_STATES.includes(at) && !places.has(id)) launching.add(id);
    }
    for (const [id, { damage, used, data }] of damaged) {
      const known = this.suspects.get(id);
      if (known === undefined) {
        this.suspects.set(id, new Set(launching));
        this.log.warn('A backing node gets no further nodes, and is released without any', {
          node_id: id,
          reason: damage,
          label: data.label,
          slots_used: [...used].map(([slot, { node }]) => `${slot}: ${node}`).join(', '),
        });
      } else for (const node of known) if (!launching.has(node)) known.delete(node);
    }
  }

  /** Returns true if a launch may have a slot on the backing node that nothing records. */
  mayHaveMore({ id, damage }: Backing): boolean {
    return damage !== undefined && (this.suspects.get(id)?.size ?? 1) > 0;
  }
}
