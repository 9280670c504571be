/** Order of service: no request passes one of a better priority that waits for the same limit. */

import { priorityOf, type JsonObject } from '@nodepool/core';
import type { Seen, SeenChange } from '../observed.js';
import { MACHINE_LABELS } from '../site.js';
import type { Rule, CheckerView } from './rule.js';
import { stringsOf, textOf } from './values.js';

/** A launcher may not know yet of a request that waits for less, milliseconds; nor try one again that could not be written. */
const NEWS_MS = 30_000;

/**
 * A launcher may not know yet of a node that another one assigned to a request more recently, milliseconds: longer than
 * its session lasts without news, after which its writes are refused.
 */
const ASSIGNMENT_NEWS_MS = 10_000;

/** A node that a request has just got. */
interface Place {
  readonly node: JsonObject;
  /** Id of its request. */
  readonly request: string;
  /** Name of the launcher that works on the request. */
  readonly launcher: string | undefined;
  /** A new node takes a place in every limit; one that was ready only in that of its new tenant. */
  readonly isNew: boolean;
}

/** The assignment of a node to a request. */
interface Assignment {
  /** Milliseconds since the start. */
  readonly at: number;
  /** Name of the launcher that works on the request. */
  readonly launcher: string | undefined;
}

/** A limit in which a place was taken. */
interface Limit {
  readonly name: string;
  readonly limit: number | undefined;
  readonly counts: (node: JsonObject) => boolean;
  /** Returns true if the pool is one in which a request waits for this limit. */
  readonly spans: (pool: JsonObject) => boolean;
}

/**
 * A request is passed if a place is taken in a limit that is too full for it, by one of a worse priority, and the launcher
 * could serve it in a pool that the limit spans. A request of a tenant with a limit is looked at in that limit only: while
 * it waits for its tenant, it leaves the others alone.
 */
export function prioritiesAreKept(view: CheckerView): Rule {
  const { observed } = view;
  /** Since when requests have been free for any launcher to take, milliseconds since the start. */
  const waitingSince = new Map<string, number>();
  /** The latest assignment of each node. */
  const assignments = new Map<string, Assignment>();
  const note = (change: SeenChange): void => {
    const request = newOwner(change);
    if (request !== undefined) assignments.set(change.id, { at: view.now(), launcher: launcherOf(request, view) });
    else if (change.after === undefined) assignments.delete(change.id);
  };
  const isKnownTo = (launcher: string | undefined, node: string): boolean => {
    const assignment = assignments.get(node);
    return (
      assignment === undefined || assignment.launcher === launcher || view.now() - assignment.at >= ASSIGNMENT_NEWS_MS
    );
  };
  return {
    number: 'O1',
    committed({ nodes, requests }) {
      for (const change of nodes) note(change);
      for (const change of nodes) {
        const place = placeTaken(change, view);
        if (place === undefined) continue;
        const { request: served, launcher } = place;
        const others = [...observed.nodes.values()].filter(
          ({ id, data }) => data['allocated_to'] !== served && isKnownTo(launcher, id),
        );
        for (const [waiting, since] of waitingSince) {
          if (view.now() - Math.max(since, view.configuredAt()) < NEWS_MS) continue;
          const passed = observed.requests.get(waiting);
          const limit = passed === undefined ? undefined : limitPassedIn(passed, place, others, view);
          if (limit === undefined) continue;
          const how = place.isNew ? 'launched' : 'handed over';
          return `node ${change.id} is ${how} for ${place.request}, while ${waiting} waits for the ${limit}`;
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
      assignments.clear();
    },
  };
}

function placeTaken(change: SeenChange, view: CheckerView): Place | undefined {
  const request = newOwner(change);
  const { before, after } = change;
  if (request === undefined || after === undefined) return undefined;
  const { data: node } = after;
  const isNew = before === undefined;
  const takesPlace = isNew ? node['state'] === 'init' : before.data['tenant_name'] !== node['tenant_name'];
  return takesPlace ? { node, request, launcher: launcherOf(request, view), isNew } : undefined;
}

/** Returns the request that the change assigns the node to. */
function newOwner({ before, after }: SeenChange): string | undefined {
  const request = after?.data['allocated_to'];
  if (typeof request !== 'string') return undefined;
  return before === undefined || before.data['allocated_to'] === null ? request : undefined;
}

function launcherOf(request: string, { observed }: CheckerView): string | undefined {
  return observed.requests.get(request)?.holder;
}

/** Returns the name of a limit in which the place was due to the waiting request. */
function limitPassedIn(
  { id, data: request }: Seen,
  place: Place,
  others: readonly Seen[],
  view: CheckerView,
): string | undefined {
  if (priorityOf(id) >= priorityOf(place.request) || waitsForMachines(request, others)) return undefined;
  const pools = view.observed.pools();
  const open = pools.filter((pool) => pool['hostname'] === place.launcher && isOpen(pool, request, pools));
  const passed = limitsOf(request, place, view).find(
    (limit) => open.some((pool) => limit.spans(pool)) && isTooFull(limit, request, others),
  );
  return passed?.name;
}

/** The limits in which the place was taken, as far as the waiting request may wait for them. */
function limitsOf({ tenant_name: tenant }: JsonObject, { node, isNew }: Place, view: CheckerView): readonly Limit[] {
  const ofTenant = view.tenantInstances(textOf(tenant));
  if (ofTenant !== undefined) {
    const counts = (other: JsonObject): boolean => other['tenant_name'] === tenant;
    return counts(node) ? [{ name: 'tenant', limit: ofTenant, counts, spans: () => true }] : [];
  }
  const { provider, pool, launcher } = node;
  const ofPool: Limit = {
    name: 'pool',
    limit: view.maxServers(textOf(provider), textOf(pool)),
    counts: (other) => other['provider'] === provider && other['pool'] === pool,
    spans: ({ id }) => id === launcher,
  };
  const ofProvider: Limit = {
    name: 'provider',
    limit: view.providerInstances(textOf(provider)),
    counts: (other) => other['provider'] === provider,
    spans: ({ provider_name: name }) => name === provider,
  };
  return isNew ? [ofPool, ofProvider] : [];
}

/** Returns true if the pool could serve the request now, no circuit breaker is open, and it leaves it to no other one. */
function isOpen(pool: JsonObject, request: JsonObject, pools: readonly JsonObject[]): boolean {
  if (pool['state'] !== 'running' || !canServe(pool, request)) return false;
  const closed = stringsOf(pool['paused_labels']);
  if (stringsOf(request['node_types']).some((label) => closed.includes(label))) return false;
  if (request['provider'] !== null && request['provider'] !== pool['provider_name']) return false;
  return !pools.some(
    (other) =>
      Number(other['priority']) < Number(pool['priority']) && other['paused'] !== true && canServe(other, request),
  );
}

function canServe(pool: JsonObject, request: JsonObject): boolean {
  const labels = stringsOf(pool['supported_labels']);
  const hasDeclined = stringsOf(request['declined_by']).includes(textOf(pool['id']));
  return !hasDeclined && stringsOf(request['node_types']).every((label) => labels.includes(label));
}

/** Returns true if fewer machines are free than the request needs: it waits for them, and not for a limit. */
function waitsForMachines({ node_types: labels }: JsonObject, others: readonly Seen[]): boolean {
  const wanted = MACHINE_LABELS.flatMap((label) => stringsOf(labels).filter((name) => name === label));
  const free = others.filter(
    ({ data: { state, allocated_to: request, type } }) =>
      state === 'ready' && request === null && wanted.some((label) => stringsOf(type).includes(label)),
  );
  return free.length < wanted.length;
}

/**
 * Returns true if `others` leave the waiting request too little room: the nodes that the launcher knew of, without those
 * of the request that got the place. Ready nodes that the waiting one could use do not count.
 */
function isTooFull({ limit, counts }: Limit, waiting: JsonObject, others: readonly Seen[]): boolean {
  const count = stringsOf(waiting['node_types']).length;
  if (limit === undefined || count > limit) return false;
  let used = 0;
  let free = 0;
  for (const { data: node } of others) {
    if (!counts(node)) continue;
    used += 1;
    if (node['state'] === 'ready' && node['allocated_to'] === null) free += 1;
  }
  const needed = count - (waiting['reuse'] === false ? 0 : free);
  return needed > 0 && used + needed > limit;
}
