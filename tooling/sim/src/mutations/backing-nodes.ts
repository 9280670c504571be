/** Mutations that mistreat backing nodes and their slots. */

import { parseBackingData, printBackingData, type JsonValue } from '@nodepool/core';
import type { Mutation } from '../mutation.js';
import { changingBackingNodes } from '../mutators.js';
import { overlay } from '@nodepool/simulated-process';
import { SLOTS } from '../site.js';

export const BACKING_NODES_MUTATIONS: readonly Mutation[] = [
  {
    name: 'assigns slots without a look at those in use',
    rule: 'B1',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        held: () =>
          backing
            .held()
            .map((each) => ({ ...each, node: { ...each.node, user_data: withoutUses(each.node.user_data) } })),
        users: () => backing.users().map((each) => ({ ...each, driver_data: null })),
      }),
    ),
  },
  {
    name: 'releases backing nodes with nodes',
    rule: 'B2',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        update: async (node, data, call) => {
          const isWritten = await backing.update(node, data, call);
          const present = backing.held().find((each) => each.node.id === node.node.id);
          if (isWritten && present !== undefined) await backing.release(present, call);
          return isWritten;
        },
      }),
    ),
  },
  {
    name: 'does not use the fullest backing node',
    rule: 'B3',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        // It seems to have no free slot.
        held: () => {
          const held = backing.held();
          const uses = held.map(({ node }) => parseBackingData(node.user_data)?.used.size ?? 0);
          const fullest = uses.indexOf(Math.max(...uses.filter((count) => count < SLOTS)));
          return held.map((each, index) => {
            const data = withSlots(each.node.user_data, uses[index] ?? 0);
            return index === fullest && uses[index] !== 0 ? { ...each, node: { ...each.node, user_data: data } } : each;
          });
        },
        update: (node, data, call) => backing.update(node, withSlots(data, SLOTS), call),
      }),
    ),
  },
  {
    name: 'never releases a backing node',
    rule: 'B4',
    fault: 'slots',
    driver: changingBackingNodes((backing) => overlay(backing, { release: () => Promise.resolve(false) })),
  },
];

/** Returns the data of a backing node as if it had no nodes. */
function withoutUses(data: JsonValue): JsonValue {
  const known = parseBackingData(data);
  return known === undefined ? data : printBackingData({ ...known, used: new Map() });
}

/** Returns the data of a backing node with another number of slots. */
function withSlots(data: JsonValue, slots: number): JsonValue {
  const known = parseBackingData(data);
  return known === undefined ? data : printBackingData({ ...known, slots });
}
