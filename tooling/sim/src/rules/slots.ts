/** Rules about nodes on backing nodes: slots 1 to 3. Slots 4 is in `rest.ts`. */

import { parseBackingData, type BackingData, type JsonObject } from '@nodepool/core';
import type { Observed, Seen, SeenChange } from '../observed.js';
import { META } from '../site.js';
import type { Rule, CheckerView } from './rule.js';
import { textOf } from './values.js';

/** The owner of all backing nodes, and of their requests. */
export const BACKING_OWNER = `NodePool:metastatic:${META}`;

/** States of nodes that do not use their slot any more. */
const LEAVING: ReadonlySet<unknown> = new Set(['deleting', 'deleted']);

/** Time for which a launcher may not know a free slot: longer than a session without contact (ms). */
const PROPAGATION_MS = 10_000;
/** Longest time between the writes of one round of a launcher (ms). */
const SAME_ROUND_MS = 1000;

/** Returns true for a backing node that is held, also if its data is damaged. */
export function isHeldBacking({ data, holder }: Seen): boolean {
  return holder === BACKING_OWNER && data['state'] === 'in-use';
}

/** Returns the data of a backing node that is held; otherwise undefined. */
export function backingOf(node: Seen): BackingData | undefined {
  return isHeldBacking(node) ? parseBackingData(node.data['user_data'] ?? null) : undefined;
}

/** Returns the slot of a node, as `<backing node>/<slot>`; undefined if it has none. */
function slotOf({ data }: Seen): string | undefined {
  const place = data['driver_data'] as JsonObject | null | undefined;
  if (data['provider'] !== META || typeof place?.['backing_node'] !== 'string') return undefined;
  return `${place['backing_node']}/${textOf(place['slot'])}`;
}

/** Slots 1: no two nodes have the same slot. */
export function oneNodePerBackingSlot({ observed }: CheckerView): Rule {
  return {
    number: 'B1',
    committed({ nodes }) {
      for (const { after } of nodes) {
        const slot = after === undefined || LEAVING.has(after.data['state']) ? undefined : slotOf(after);
        if (after === undefined || slot === undefined) continue;
        for (const other of observed.nodes.values()) {
          if (other.id === after.id || LEAVING.has(other.data['state']) || slotOf(other) !== slot) continue;
          return `slot ${slot} has node ${other.id} (${textOf(other.data['state'])}) and node ${after.id}`;
        }
      }
      return undefined;
    },
  };
}

/** Slots 2: no launcher releases a backing node with a slot in use. */
export function usedBackingNodesStay({ observed }: CheckerView): Rule {
  return {
    number: 'B2',
    committed({ nodes }) {
      for (const { id, before, after, by } of nodes) {
        if (before === undefined || !isHeldBacking(before) || by !== 'launcher') continue;
        if (after?.data['state'] === 'in-use') continue;
        const promised = backingOf(before)?.used.values() ?? [];
        const isPromised = [...promised].some(({ node }) => isUsing(observed.nodes.get(node)));
        if (isPromised || hasSlotInUse(id, observed)) return `backing node ${id} was released while it has nodes`;
      }
      return undefined;
    },
  };
}

function isUsing(node: Seen | undefined): boolean {
  return node !== undefined && !LEAVING.has(node.data['state']);
}

/** Returns true if a node on the backing node exists that is not being deleted. */
export function hasSlotInUse(id: string, { nodes }: Pick<Observed, 'nodes'>): boolean {
  for (const other of nodes.values()) {
    if (isUsing(other) && slotOf(other)?.startsWith(`${id}/`) === true) return true;
  }
  return false;
}

/** Slots 3: the fullest backing node with a free slot gets the next node. */
export function backingNodesArePacked(view: CheckerView): Rule {
  /** Time of the last change of each backing node, milliseconds since the start. */
  const changedAt = new Map<string, number>();
  /** Backing nodes that were passed over, with the time and the other one. */
  const passedOver = new Map<string, { readonly at: number; readonly what: string }>();
  const note = ({ id, before, after }: SeenChange): void => {
    changedAt.set(id, view.now());
    passedOver.delete(id);
    const was = before === undefined ? undefined : backingOf(before);
    const is = after === undefined ? undefined : backingOf(after);
    if (was === undefined || is === undefined || is.used.size <= was.used.size || hasLeavingSlot(id, view)) return;
    for (const other of view.observed.nodes.values()) {
      const data = other.id === id ? undefined : backingOf(other);
      if (data === undefined || data.failed || data.used.size >= data.slots || data.used.size <= was.used.size)
        continue;
      const isKnown = view.now() - (changedAt.get(other.id) ?? view.now()) > PROPAGATION_MS;
      if (!isKnown || hasLeavingSlot(other.id, view) || isInterrupted(other)) continue;
      const what = `backing node ${id} with ${was.used.size} nodes got another one, and ${other.id} with ${data.used.size} has a free slot`;
      passedOver.set(other.id, { at: view.now(), what });
    }
  };
  return {
    number: 'B3',
    committed({ nodes }) {
      for (const change of nodes) note(change);
      // A launcher writes several backing nodes at the same time.
      for (const { at, what } of passedOver.values()) if (view.now() - at > SAME_ROUND_MS) return what;
      return undefined;
    },
    forget: () => {
      changedAt.clear();
      passedOver.clear();
    },
  };
}

/** Returns true if a node on the backing node is being deleted: its slot is not free before its record is removed. */
function hasLeavingSlot(id: string, { observed }: CheckerView): boolean {
  for (const other of observed.nodes.values()) {
    if (LEAVING.has(other.data['state']) && slotOf(other)?.startsWith(`${id}/`) === true) return true;
  }
  return false;
}

function isInterrupted({ data }: Seen): boolean {
  return data['interruption'] !== undefined && data['interruption'] !== null;
}
