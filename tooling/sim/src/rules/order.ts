/** Order of service: no request passes one of a better priority that waits for the same limit. */

import { priorityOf, type JsonObject } from '@nodepool/core';
import type { Seen } from '../observed.js';
import type { Rule, Sight } from './rule.js';
import { stringsOf, textOf } from './values.js';

/** A launcher may not know yet of a request that waits for less, milliseconds; nor try one again that could not be written. */
const NEWS_MS = 30_000;

/**
 * A launch is a pass if it takes a place in a pool that is too full for a request of a better priority, which the pool
 * could serve and whose tenant has no limit. Requests of other pools are independent of it.
 */
export function prioritiesAreKept(sight: Sight): Rule {
  const { observed } = sight;
  /** Since when requests have been free for any launcher to take, milliseconds since the start. */
  const waitingSince = new Map<string, number>();
  return {
    number: 'O1',
    committed({ nodes, requests }) {
      for (const { id, before, after } of nodes) {
        if (before !== undefined || after?.data['state'] !== 'init') continue;
        for (const [waiting, since] of waitingSince) {
          if (sight.now() - Math.max(since, sight.configuredAt()) < NEWS_MS) continue;
          const passed = observed.requests.get(waiting);
          if (passed !== undefined && isPassed(passed, after.data, sight)) {
            return `node ${id} is launched for ${textOf(after.data['allocated_to'])}, while ${waiting} waits for the pool`;
          }
        }
      }
      for (const { id, after } of requests) {
        const waits = after?.data['state'] === 'requested' && after.contender === undefined;
        if (!waits) waitingSince.delete(id);
        else if (!waitingSince.has(id)) waitingSince.set(id, sight.now());
      }
      return undefined;
    },
    forget: () => waitingSince.clear(),
  };
}

function isPassed({ id, data: request }: Seen, node: JsonObject, sight: Sight): boolean {
  if (priorityOf(id) >= priorityOf(textOf(node['allocated_to']))) return false;
  const { launcher, provider, pool } = node;
  if (sight.tenantInstances(textOf(request['tenant_name'])) !== undefined) return false;
  const component = sight.observed.pools().find((each) => each['id'] === launcher);
  if (component === undefined || !canServe(component, request)) return false;
  if (request['provider'] !== null && request['provider'] !== provider) return false;
  const isAhead = (other: JsonObject): boolean =>
    Number(other['priority']) < Number(component['priority']) && other['paused'] !== true && canServe(other, request);
  if (sight.observed.pools().some(isAhead)) return false;
  const count = stringsOf(request['node_types']).length;
  const limit = sight.maxServers(textOf(provider), textOf(pool)) ?? Infinity;
  const inPool = countOf(sight, (each) => each['provider'] === provider && each['pool'] === pool) - 1;
  return count <= limit && inPool + count > limit;
}

function canServe(pool: JsonObject, request: JsonObject): boolean {
  const labels = stringsOf(pool['supported_labels']);
  const hasDeclined = stringsOf(request['declined_by']).includes(textOf(pool['id']));
  return !hasDeclined && stringsOf(request['node_types']).every((label) => labels.includes(label));
}

function countOf({ observed }: Sight, counts: (node: JsonObject) => boolean): number {
  let count = 0;
  for (const { data } of observed.nodes.values()) if (counts(data)) count += 1;
  return count;
}
