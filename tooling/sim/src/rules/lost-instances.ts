/** Rules about ready nodes whose instance is lost: safety 2, as far as the cloud's listings show it. */

import { externalIdKey, isJsonObject, type ExternalId } from '@nodepool/core';
import { isOfMachine } from './machines.js';
import type { CheckerView, Rule, SeenListing } from './rule.js';
import { nodesOf, textOf } from './values.js';

/** Time after a node became ready during which listings may lack its instance (ms). */
const SETTLE_MS = 60_000;
/** Greatest time from the allocation of a node to the check before its hand-over (ms). */
const CHECKED_WITHIN_MS = 30_000;
const REQUEST = /^\/nodepool\/requests\/[^/]+$/;

/**
 * Safety 2: a launcher hands out no node that its newest complete listing lacks or shows as failed. If it has never
 * listed the provider's instances, it hands out no node that has been ready for long.
 */
export function fulfilledNodesExist(view: CheckerView): Rule {
  const { observed } = view;
  const newest = new Map<string, SeenListing>();
  const allocatedAt = new Map<string, number>();
  const flaw = (id: string, launcher: string): string | undefined => {
    const node = observed.nodes.get(id);
    if (node === undefined || isOfMachine(node)) return undefined;
    const { data } = node;
    // A node that the request launches becomes ready with the fulfilment.
    if (data['state'] !== 'ready' || !isExternalId(data['external_id'])) return undefined;
    const readyAt = Number(data['state_time']) * 1000;
    const listing = newest.get(`${launcher} ${textOf(data['provider'])}`);
    const allocated = allocatedAt.get(id) ?? view.wallClock();
    if (listing === undefined) {
      const readyFor = allocated - readyAt;
      return readyFor >= SETTLE_MS + CHECKED_WITHIN_MS
        ? `node ${id}, ready for ${readyFor} ms, was handed out by a launcher that has never listed its instance`
        : undefined;
    }
    const key = externalIdKey(data['external_id']);
    // An older listing may show a former instance with the id.
    const instance = listing.instances.find(
      ({ externalId, tags }) => externalIdKey(externalId) === key && tags.nodepool_node_id === id,
    );
    if (instance === undefined) {
      return listing.requestedAt >= readyAt + SETTLE_MS
        ? `node ${id} was handed out although its instance ${key} is not listed`
        : undefined;
    }
    if (!instance.deleted && instance.failed === undefined) return undefined;
    return `node ${id} was handed out although its instance ${key} is listed as failed`;
  };
  return {
    number: 'S2',
    listed(listing) {
      const key = `${listing.launcher} ${listing.provider}`;
      // A listing that was requested earlier may arrive later.
      if (listing.requestedAt >= (newest.get(key)?.requestedAt ?? -Infinity)) newest.set(key, listing);
    },
    committed({ nodes }) {
      for (const { id, before, after } of nodes) {
        const is = after?.data['allocated_to'];
        if (is !== before?.data['allocated_to']) allocatedAt.set(id, view.wallClock());
      }
      return undefined;
    },
    writing(ops, launcher) {
      for (const op of ops) {
        if (op.type !== 'set' || !REQUEST.test(op.path)) continue;
        const request: unknown = JSON.parse(new TextDecoder().decode(op.data));
        if (!isJsonObject(request) || request['state'] !== 'fulfilled') continue;
        for (const id of nodesOf(request)) {
          const found = flaw(id, launcher);
          if (found !== undefined) return found;
        }
      }
      return undefined;
    },
  };
}

function isExternalId(value: unknown): value is ExternalId {
  return typeof value === 'string' || isJsonObject(value);
}
