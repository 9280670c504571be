/** Views of backing nodes and of the nodes on them. */

import { parseBackingData, slotPlaceOf, slotsInUse, type Node } from '@nodepool/core';
import type { NodeEntry } from './node-entry.js';
import type { NodeStore } from './node-store.js';

/** The slots of a backing node. */
export interface BackingSlots {
  /** Label of the nodes on it. */
  readonly label: string;
  readonly slots: number;
  /** Ids of the nodes on it, by slot. */
  readonly used: ReadonlyMap<number, string>;
  /** Why it gets no further nodes; undefined if it does, as far as its record shows. */
  readonly closed: string | undefined;
  /** A summary for people, e.g. `3 of 8 used`. */
  readonly text: string;
}

/** Returns the slots of a backing node; undefined for other nodes. */
export function backingSlots(nodes: Pick<NodeStore, 'ofProvider'>, { id, node }: NodeEntry): BackingSlots | undefined {
  const data = node.state === 'in-use' || node.state === 'hold' ? parseBackingData(node.user_data) : undefined;
  if (data === undefined) return undefined;
  // Owners are named `NodePool:<driver>:<provider>`.
  const provider = data.owner.split(':').slice(2).join(':');
  const users: Node[] = [];
  for (const { node: user } of nodes.ofProvider(provider)) {
    if (slotPlaceOf(user)?.backingNode === id) users.push(user);
  }
  const { label, slots, failed, reason } = data;
  const uses = [...slotsInUse(data, users)].sort(([a], [b]) => a - b);
  const used = new Map(uses.map(([slot, use]) => [slot, use.node]));
  const closed = node.interruption?.reason ?? (failed ? (reason ?? 'it is marked as failed') : undefined);
  return { label, slots, used, closed, text: `${used.size} of ${slots} used` };
}

/** Returns the place of a node on a backing node for people, e.g. `slot 3 of node 0000000001`. */
export function slotText(node: Pick<Node, 'driver_data'>): string | undefined {
  const place = slotPlaceOf(node);
  return place === undefined ? undefined : `slot ${place.slot} of node ${place.backingNode}`;
}
