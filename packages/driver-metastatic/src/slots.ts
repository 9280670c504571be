/** Slots of backing nodes: which are free, and which node gets which. Pure functions. */

import {
  backingDamage,
  parseBackingData,
  slotPlaceOf,
  slotsInUse,
  type BackingData,
  type BackingNode,
  type Node,
  type SlotUse,
} from '@nodepool/core';
import type { BackingSettings } from './config.js';

/** A backing node with its slots. */
export interface Backing {
  readonly held: BackingNode;
  readonly id: string;
  /** The data in the record; if that is damaged, data that allows no further nodes. */
  readonly data: BackingData;
  /** Describes the damage of the data in the record; undefined if there is none. Damaged data is never written. */
  readonly damage: string | undefined;
  /** Slots in use by number, those that only the nodes themselves record included. */
  readonly used: ReadonlyMap<number, SlotUse>;
}

/** A launch that needs a slot. Node and attempt together identify it. */
export interface SlotWant {
  readonly use: SlotUse;
  readonly label: string;
}

/** A slot for a launch. */
export interface Assignment<W> {
  readonly want: W;
  readonly backing: Backing;
  readonly slot: number;
}

/** The facts from which the data of a damaged backing node is rebuilt. */
export interface BackingContext {
  readonly owner: string;
  readonly settings: ReadonlyMap<string, Pick<BackingSettings, 'backingLabel' | 'slots'>>;
}

/** Returns the held nodes with the slots that `users` have. */
export function backingsOf(
  held: readonly BackingNode[],
  users: Iterable<Node>,
  context: BackingContext,
): readonly Backing[] {
  const byBacking = new Map<string, Node[]>();
  for (const user of users) {
    const place = slotPlaceOf(user);
    if (place === undefined) continue;
    const others = byBacking.get(place.backingNode);
    if (others === undefined) byBacking.set(place.backingNode, [user]);
    else others.push(user);
  }
  return held.map((each) => {
    const { id } = each.node;
    const nodes = byBacking.get(id) ?? [];
    const known = dataOf(each);
    const damage = known?.owner === context.owner ? undefined : backingDamage(each.node.user_data, context.owner);
    const data = known === undefined || damage !== undefined ? rebuilt(each, nodes, damage, context) : known;
    return { held: each, id, data, damage, used: slotsInUse(data, nodes) };
  });
}

/** Returns data that gives a damaged backing node no further nodes. Its nodes themselves show the slots in use. */
function rebuilt(
  { node }: BackingNode,
  [user]: readonly Node[],
  damage: string | undefined,
  { owner, settings }: BackingContext,
): BackingData {
  const [configured] = [...settings].find(([, { backingLabel }]) => node.type.includes(backingLabel)) ?? [];
  const label = user?.type[0] ?? configured ?? '';
  const slots = settings.get(label)?.slots ?? 0;
  return {
    owner,
    label,
    slots,
    failed: true,
    reason: damage ?? null,
    launched: null,
    idle: null,
    used: new Map(),
  };
}

/** Parsed data by node, because the same object is read many times. */
const parsed = new WeakMap<Node, BackingData | null>();

function dataOf({ node }: BackingNode): BackingData | undefined {
  let data = parsed.get(node);
  if (data === undefined) {
    data = parseBackingData(node.user_data) ?? null;
    parsed.set(node, data);
  }
  return data ?? undefined;
}

/** Returns the number of free slots, regardless of whether the node may get further nodes. */
export function freeSlots({ data, used }: Pick<Backing, 'data' | 'used'>): number {
  return Math.max(0, data.slots - used.size);
}

/** A slot of a backing node. */
export interface Placement {
  readonly backing: Backing;
  readonly slot: number;
}

/** Slots in use by the id of their node. */
export type PlacesByNode = ReadonlyMap<string, readonly Placement[]>;

export function placesByNode(backings: readonly Backing[]): PlacesByNode {
  const places = new Map<string, Placement[]>();
  for (const backing of backings) {
    for (const [slot, { node }] of backing.used) {
      const others = places.get(node);
      if (others === undefined) places.set(node, [{ backing, slot }]);
      else others.push({ backing, slot });
    }
  }
  return places;
}

/** Returns the slot of a launch; undefined if it has none. A slot without an attempt belongs to the node's only one. */
export function placeOf(
  places: PlacesByNode,
  { node, attempt }: Pick<SlotUse, 'node' | 'attempt'>,
): Placement | undefined {
  return places.get(node)?.find(({ backing, slot }) => (backing.used.get(slot)?.attempt ?? attempt) === attempt);
}

/**
 * Assigns the slots of usable backing nodes to launches, in the order of the launches. The fullest node that has a free
 * slot comes first, so that the others become empty; of equally full ones the oldest, which reaches its age first.
 */
export function assignSlots<W extends Pick<SlotWant, 'label'>>(
  wants: readonly W[],
  usable: readonly Backing[],
): readonly Assignment<W>[] {
  const byLabel = new Map<string, Backing[]>();
  for (const backing of usable) {
    if (freeSlots(backing) === 0) continue;
    const others = byLabel.get(backing.data.label);
    if (others === undefined) byLabel.set(backing.data.label, [backing]);
    else others.push(backing);
  }
  // The last one of a list is the next, so that full ones are removed at once.
  for (const backings of byLabel.values()) backings.sort((a, b) => byFullness(b, a));
  const taken = new Map<Backing, Set<number>>();
  const assignments: Assignment<W>[] = [];
  for (const want of wants) {
    const backings = byLabel.get(want.label) ?? [];
    const backing = backings.at(-1);
    if (backing === undefined) continue;
    const added = taken.get(backing) ?? new Set<number>();
    taken.set(backing, added);
    const slot = firstFree(backing, added);
    added.add(slot);
    assignments.push({ want, backing, slot });
    if (backing.used.size + added.size >= backing.data.slots) backings.pop();
  }
  return assignments;
}

function byFullness(a: Backing, b: Backing): number {
  return freeSlots(a) - freeSlots(b) || launchedAt(a) - launchedAt(b) || (a.id < b.id ? -1 : 1);
}

/** Returns the first slot that is neither in use nor in `added`. */
function firstFree({ used }: Backing, added: ReadonlySet<number>): number {
  let slot = 0;
  while (used.has(slot) || added.has(slot)) slot += 1;
  return slot;
}

/** Returns the unix seconds at which a backing node was launched. Early data lacks the time. */
export function launchedAt({ data, held }: Pick<Backing, 'data' | 'held'>): number {
  return data.launched ?? held.node.created_time ?? held.node.state_time;
}
