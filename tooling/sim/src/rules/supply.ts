/**
 * Liveness 5: the number of ready nodes is `min-ready`, or what `spare` asks for, regardless of the number of
 * launchers.
 */

import { MIN_READY_REQUESTOR } from '@nodepool/core';
import type { Seen } from '../observed.js';
import type { Rule, CheckerView } from './rule.js';
import { stringsOf, textOf } from './values.js';

/** Time in which a launcher may not know yet that there are enough nodes (ms). */
const PROPAGATION_MS = 30_000;

/** No node is requested if there have been enough for a while. The end of a run checks that there are enough. */
export function noExcessReadyNodes(view: CheckerView): Rule {
  const enoughSince = new Map<string, number>();
  return {
    number: 'L5',
    committed({ requests }) {
      for (const { id, before, after } of requests) {
        if (before !== undefined || after?.data['requestor'] !== MIN_READY_REQUESTOR) continue;
        for (const label of stringsOf(after.data['node_types'])) {
          const since = enoughSince.get(label);
          if (since !== undefined && view.now() - Math.max(since, view.configuredAt()) > PROPAGATION_MS)
            return `request ${id} requests another ready node of label ${label}, although there are ${supplyOf(view, label) - 1}`;
        }
      }
      note(view, enoughSince);
      return undefined;
    },
    forget: () => enoughSince.clear(),
  };
}

function note(view: CheckerView, enoughSince: Map<string, number>): void {
  const labels = new Set([...enoughSince.keys(), ...view.labels]);
  for (const label of labels) {
    if (supplyOf(view, label) < view.wantedReady(label, inUse(view, label))) enoughSince.delete(label);
    else if (!enoughSince.has(label)) enoughSince.set(label, view.now());
  }
}

/** Returns the number of unallocated ready nodes and of pending requests for them. */
function supplyOf({ observed }: Pick<CheckerView, 'observed'>, label: string): number {
  let count = 0;
  for (const node of observed.nodes.values()) if (isAvailable(node, label)) count += 1;
  for (const { data } of observed.requests.values()) {
    const open = data['state'] === 'requested' || data['state'] === 'pending';
    if (open && data['requestor'] === MIN_READY_REQUESTOR && stringsOf(data['node_types']).includes(label)) count += 1;
  }
  return count;
}

/** Returns the number of nodes of a label that are in use. */
export function inUse({ observed }: Pick<CheckerView, 'observed'>, label: string): number {
  const isInUse = ({ data }: Seen): boolean => data['state'] === 'in-use' && stringsOf(data['type']).includes(label);
  return [...observed.nodes.values()].filter(isInUse).length;
}

export function isAvailable({ data, holder }: Seen, label: string): boolean {
  const free = data['state'] === 'ready' && holder === undefined && textOf(data['allocated_to']) === 'null';
  return free && stringsOf(data['type']).includes(label);
}
