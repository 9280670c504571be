/** Rules about node allocation: safety 1, 2 and 7. */

import type { Commit, Seen, SeenChange } from '../observed.js';
import type { Rule, CheckerView } from './rule.js';
import { holdExpired, nodesOf, REQUESTORS_STATES, stringsOf, textOf } from './values.js';
import { isOnlyInterrupted } from './writes.js';

/** States from which an unused node can become ready. */
const CLEAN_STATES: ReadonlySet<unknown> = new Set(['init', 'building', 'testing', 'ready']);

/** Safety 1: a node is allocated to at most one live request, and only under its lock. */
export function oneRequestPerNode({ observed }: CheckerView): Rule {
  return {
    number: 'S1',
    committed({ nodes, requests }) {
      for (const { id, before, after, by } of nodes) {
        // A requestor writes back the record as it was read, possibly late. This does not allocate anything.
        if (before === undefined || after === undefined || by === 'requestor') continue;
        const was = before.data['allocated_to'];
        const is = after.data['allocated_to'];
        if (was === is || is === null) continue;
        if (was !== null) return `node ${id} went from request ${textOf(was)} to request ${textOf(is)}`;
        if (after.holder === undefined) return `node ${id} was allocated to ${textOf(is)} without its lock`;
        if (before.holder !== undefined) return `node ${id} was allocated while ${before.holder} held its lock`;
      }
      for (const { id, after } of requests) {
        if (after?.data['state'] !== 'fulfilled') continue;
        for (const other of observed.requests.values()) {
          if (other.id === id || other.data['state'] !== 'fulfilled') continue;
          const shared = nodesOf(after.data).find((node) => nodesOf(other.data).includes(node));
          if (shared !== undefined) return `node ${shared} was handed out to requests ${id} and ${other.id}`;
        }
      }
      return undefined;
    },
  };
}

/** Safety 2: a `fulfilled` request has all its nodes, ready, unlocked, in the requested order. */
export function fulfilledMeansReady({ observed }: CheckerView): Rule {
  const flaw = ({ id, data }: Seen): string | undefined => {
    const labels = stringsOf(data['node_types']);
    const nodes = nodesOf(data);
    if (nodes.length !== labels.length) return `request ${id} has ${nodes.length} nodes for ${labels.length} labels`;
    for (const [index, label] of labels.entries()) {
      const node = observed.nodes.get(nodes[index] ?? '');
      const which = `node ${nodes[index] ?? ''} of request ${id}`;
      if (node === undefined) return `${which} does not exist`;
      if (node.data['state'] !== 'ready') return `${which} is ${textOf(node.data['state'])}`;
      if (node.holder !== undefined) return `${which} is locked by ${node.holder}`;
      if (node.data['allocated_to'] !== id) return `${which} is allocated to ${textOf(node.data['allocated_to'])}`;
      if (!stringsOf(node.data['type']).includes(label)) return `${which} is no ${label}, which stands in its place`;
    }
    return undefined;
  };
  return {
    number: 'S2',
    committed({ requests }) {
      for (const { before, after } of requests) {
        if (after?.data['state'] !== 'fulfilled' || before?.data['state'] === 'fulfilled') continue;
        const found = flaw(after);
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
}

/** Safety 7: used nodes are never allocated, and launchers do not change nodes that a requestor has locked or holds. */
export function dirtyStaysDirty(view: CheckerView): Rule {
  const dirty = new Set<string>();
  return {
    number: 'S7',
    committed: ({ nodes, requests }: Commit) => {
      for (const change of nodes) {
        const flaw = change.by === 'launcher' ? touched(change, view.wallClock()) : undefined;
        if (flaw !== undefined) return flaw;
        if (REQUESTORS_STATES.has(change.after?.data['state'])) dirty.add(change.id);
      }
      for (const { id, before, after } of requests) {
        if (after?.data['state'] !== 'fulfilled' || before?.data['state'] === 'fulfilled') continue;
        const used = nodesOf(after.data).find((node) => dirty.has(node));
        if (used !== undefined) return `request ${id} got node ${used}, which had been used`;
      }
      return undefined;
    },
    forget: () => dirty.clear(),
  };
}

/** Describes a launcher's change of a node that it must not change. */
function touched({ id, before, after }: SeenChange, nowMs: number): string | undefined {
  if (before === undefined) return undefined;
  const was = before.data['state'];
  const is = after?.data['state'];
  if (is === 'ready' && !CLEAN_STATES.has(was)) return `node ${id} went from ${textOf(was)} to ready`;
  // A launcher tells the requestor that the instance is lost.
  if (isOnlyInterrupted(before, after)) return undefined;
  if (before.holder === 'requestor') return `node ${id} became ${textOf(is)} while a requestor had it locked`;
  if (was !== 'hold' || is === 'hold' || holdExpired(before.data, nowMs)) return undefined;
  return `node ${id} was held and became ${textOf(is)}`;
}
