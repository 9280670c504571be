/** Views of backing nodes and of the nodes on them. */

import {
  backingDamage,
  backingOwnersOf,
  parseBackingData,
  providerOfBackingOwner,
  slotPlaceOf,
  slotsInUse,
  type BackingData,
  type Node,
} from '@nodepool/core';
import type { NodeEntry } from './node-entry.js';
import type { NodeStore } from './node-store.js';

/** The slots of a backing node. */
export interface BackingSlots {
  /** Identifier of the owner that the record names. */
  readonly owner: string;
  /** Label of the nodes on it; null if the data of the node is damaged. */
  readonly label: string | null;
  /** Null if the data of the node is damaged. */
  readonly slots: number | null;
  /** Ids of the nodes on it, by slot. */
  readonly used: ReadonlyMap<number, string>;
  /** Why it gets no further nodes; undefined if it does, as far as its record shows. */
  readonly closed: string | undefined;
  /** A summary for people, e.g. `3 of 8 used`. */
  readonly text: string;
}

/** Returns the slots of a backing node; undefined for other nodes. */
export function backingSlots(nodes: Pick<NodeStore, 'ofProvider'>, { id, node }: NodeEntry): BackingSlots | undefined {
  const [owner] = node.state === 'in-use' || node.state === 'hold' ? backingOwnersOf(node) : [];
  if (owner === undefined) return undefined;
  const damage = backingDamage(node.user_data, owner);
  const data = damage === undefined ? parseBackingData(node.user_data) : undefined;
  const provider = providerOfBackingOwner(owner) ?? '';
  const users: Node[] = [];
  for (const { node: user } of nodes.ofProvider(provider)) {
    if (slotPlaceOf(user)?.backingNode === id) users.push(user);
  }
  const uses = [...slotsInUse(data ?? { used: new Map() }, users)].sort(([a], [b]) => a - b);
  const used = new Map(uses.map(([slot, use]) => [slot, use.node]));
  return {
    owner,
    label: data?.label ?? null,
    slots: data?.slots ?? null,
    used,
    closed: node.interruption?.reason ?? damage ?? closedBy(node, data),
    text: data === undefined ? `${used.size} used` : `${used.size} of ${data.slots} used`,
  };
}

function closedBy({ state }: Node, data: BackingData | undefined): string | undefined {
  if (state === 'hold') return 'an operator holds it';
  return data?.failed === true ? (data.reason ?? 'it is marked as failed') : undefined;
}

/** Returns the backing nodes, by id, whose data is damaged although their owner has locked them. */
export function damagedBackingNodes(nodes: Pick<NodeStore, 'inState'>): readonly DamagedBackingNode[] {
  const found: DamagedBackingNode[] = [];
  for (const state of ['in-use', 'hold'] as const) {
    for (const { node, locked } of nodes.inState(state)) {
      const damaged = locked ? damageOf(node) : undefined;
      if (damaged !== undefined) found.push(damaged);
    }
  }
  return found.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Results by node, because the same object is looked at many times. */
const damages = new WeakMap<Node, DamagedBackingNode | null>();

function damageOf(node: Node): DamagedBackingNode | undefined {
  let damaged = damages.get(node);
  if (damaged === undefined) {
    const [owner] = backingOwnersOf(node);
    const damage = owner === undefined ? undefined : backingDamage(node.user_data, owner);
    damaged = owner === undefined || damage === undefined ? null : { id: node.id, owner, damage };
    damages.set(node, damaged);
  }
  return damaged ?? undefined;
}

/** A backing node whose slots are not recorded. */
export interface DamagedBackingNode {
  readonly id: string;
  readonly owner: string;
  readonly damage: string;
}

/** Returns the place of a node on a backing node for people, e.g. `slot 3 of node 0000000001`. */
export function slotText(node: Pick<Node, 'driver_data'>): string | undefined {
  const place = slotPlaceOf(node);
  return place === undefined ? undefined : `slot ${place.slot} of node ${place.backingNode}`;
}
