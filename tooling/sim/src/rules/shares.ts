/** Fair shares: no tenant takes capacity beyond its share while another one, far below its share, waits for it. */

import type { JsonObject } from '@nodepool/core';
import type { SeenChange } from '../observed.js';
import type { Rule, CheckerView } from './rule.js';
import { stringsOf, textOf } from './values.js';

/** Age from which a request is not overtaken: the backfill window, and time to learn of the request (ms). */
const OLD_MS = 90_000;
/** Age from which a request may go first because it starves (ms). */
const STARVING_MS = 600_000;
/**
 * Time for which a tenant must have had no node, so that its use of the past does not matter (ms). It is twice the
 * half-life of the simulated sites.
 */
const WITHOUT_NODES_MS = 60_000;

export function sharesAreKept(view: CheckerView): Rule {
  const { observed } = view;
  /** Time since which requests have been unlocked, milliseconds since the start. */
  const waitingSince = new Map<string, number>();
  /** Time at which a tenant last had a node, milliseconds since the start. */
  const lastNode = new Map<string, number>();
  const isWithout = (tenant: string): boolean => {
    const { nodes } = observed;
    for (const { data } of nodes.values()) if (data['tenant_name'] === tenant && isUsed(data)) return false;
    return view.now() - (lastNode.get(tenant) ?? 0) >= WITHOUT_NODES_MS;
  };
  return {
    number: 'F1',
    committed({ nodes, requests }) {
      const shares = view.shares();
      if (shares === undefined) return undefined;
      for (const { before, after } of nodes) {
        for (const seen of [before, after]) {
          if (seen !== undefined && isUsed(seen.data)) lastNode.set(textOf(seen.data['tenant_name']), view.now());
        }
      }
      for (const change of nodes) {
        const launched = launchOf(change);
        if (launched === undefined || !hasShare(launched, shares, view)) continue;
        for (const [waiting, since] of waitingSince) {
          const passed = observed.requests.get(waiting)?.data;
          const age = view.now() - Math.max(since, view.configuredAt());
          if (passed === undefined || age < OLD_MS || age > STARVING_MS || !isServed(passed, launched, view)) continue;
          const tenant = textOf(passed['tenant_name']);
          if (!(tenant in shares) || tenant === launched['tenant_name'] || !isWithout(tenant)) continue;
          const whose = `tenant ${textOf(launched['tenant_name'])}, which has its share`;
          return `node ${change.id} is launched for ${whose}, while ${waiting} of tenant ${tenant} waits`;
        }
      }
      for (const { id, after } of requests) {
        const waits = after?.data['state'] === 'requested' && after.contender === undefined;
        if (!waits) waitingSince.delete(id);
        else if (!waitingSince.has(id)) waitingSince.set(id, view.now());
      }
      return undefined;
    },
    forget: () => {
      waitingSince.clear();
      lastNode.clear();
    },
  };
}

/** Returns the record of a node that a launcher has just planned. */
function launchOf({ before, after }: SeenChange): JsonObject | undefined {
  return before === undefined && after?.data['state'] === 'init' ? after.data : undefined;
}

/** Returns true if the tenant of the node has as many nodes in its pool as its share is. */
function hasShare(
  { tenant_name: tenant, provider, pool }: JsonObject,
  shares: Readonly<Record<string, number>>,
  view: CheckerView,
): boolean {
  const name = textOf(tenant);
  const total = Object.values(shares).reduce((sum, share) => sum + share, 0);
  const limit = view.maxServers(textOf(provider), textOf(pool)) ?? Infinity;
  let count = 0;
  for (const { data } of view.observed.nodes.values()) {
    if (data['tenant_name'] === tenant && data['pool'] === pool && isUsed(data)) count += 1;
  }
  return count >= (limit * (shares[name] ?? total)) / total;
}

function isUsed({ tenant_name: tenant, allocated_to: request, state }: JsonObject): boolean {
  return tenant !== null && (request !== null || state !== 'ready');
}

/** Returns true if the pool of the node serves the request. */
function isServed(request: JsonObject, { launcher }: JsonObject, { observed }: CheckerView): boolean {
  const pool = observed.pools().find(({ id }) => id === launcher);
  if (pool === undefined || stringsOf(request['declined_by']).includes(textOf(launcher))) return false;
  if (request['provider'] !== null && request['provider'] !== pool['provider_name']) return false;
  const served = stringsOf(pool['supported_labels']);
  return stringsOf(request['node_types']).every((label) => served.includes(label));
}
