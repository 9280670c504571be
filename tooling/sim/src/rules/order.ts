/** Order of service: no request overtakes one of higher priority that waits for the same limit. */

import { priorityOf, type JsonObject } from '@nodepool/core';
import type { Seen, SeenChange } from '../observed.js';
import { MACHINE_LABELS } from '../site.js';
import { isOfMachine } from './machines.js';
import type { Rule, CheckerView } from './rule.js';
import { stringsOf, textOf } from './values.js';

/** Time for which a launcher may not know a request, or not retry one that it could not write (ms). */
const PROPAGATION_MS = 30_000;

/**
 * Time for which a launcher may not know that another one has allocated a node (ms). It is longer than a session
 * without contact, after which writes are refused.
 */
const ASSIGNMENT_PROPAGATION_MS = 10_000;

/** A node that was just allocated to a request. */
interface Place {
  readonly node: JsonObject;
  /** Id of the request. */
  readonly request: string;
  /** Name of the launcher that has accepted the request. */
  readonly launcher: string | undefined;
  /**
   * True for a new node, which counts against every limit. A ready node only newly counts against its tenant's limit.
   */
  readonly isNew: boolean;
}

/** The allocation of a node to a request. */
interface Assignment {
  /** Milliseconds since the start. */
  readonly at: number;
  /** Name of the launcher that has accepted the request. */
  readonly launcher: string | undefined;
}

/** A limit in which the node counts. */
interface Limit {
  readonly name: string;
  readonly limit: number | undefined;
  readonly counts: (node: JsonObject) => boolean;
  /** Returns true if requests wait for this limit in the pool. */
  readonly spans: (pool: JsonObject) => boolean;
}

/**
 * A request is overtaken if a request of lower priority gets a node in a limit that is too full for the first one,
 * although the launcher could serve the first one in a pool of that limit. For a request of a tenant with a limit, only
 * that limit is checked, because a request that waits for its tenant does not block requests of other tenants.
 */
export function prioritiesAreKept(view: CheckerView): Rule {
  const { observed } = view;
  /** Time since which requests have been unlocked, milliseconds since the start. */
  const waitingSince = new Map<string, number>();
  /** The latest allocation of each node. */
  const assignments = new Map<string, Assignment>();
  const note = (change: SeenChange): void => {
    const request = newOwner(change);
    if (request !== undefined) assignments.set(change.id, { at: view.now(), launcher: launcherOf(request, view) });
    else if (change.after === undefined) assignments.delete(change.id);
  };
  const isKnownTo = (launcher: string | undefined, node: string): boolean => {
    const assignment = assignments.get(node);
    return (
      assignment === undefined ||
      assignment.launcher === launcher ||
      view.now() - assignment.at >= ASSIGNMENT_PROPAGATION_MS
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
          if (view.now() - Math.max(since, view.configuredAt()) < PROPAGATION_MS) continue;
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

/** Returns the id of the request to which the change allocates the node. */
function newOwner({ before, after }: SeenChange): string | undefined {
  const request = after?.data['allocated_to'];
  if (typeof request !== 'string') return undefined;
  return before === undefined || before.data['allocated_to'] === null ? request : undefined;
}

function launcherOf(request: string, { observed }: CheckerView): string | undefined {
  return observed.requests.get(request)?.holder;
}

/** Returns the name of a limit in which the waiting request should have been served first. */
function limitPassedIn(
  { id, data: request }: Seen,
  place: Place,
  others: readonly Seen[],
  view: CheckerView,
): string | undefined {
  // Under fair shares, priorities count within a tenant only.
  if (view.shares() !== undefined && request['tenant_name'] !== place.node['tenant_name']) return undefined;
  const usable = others.filter((node) => !isOfMachine(node) || view.hasMachine(place.launcher, node.data));
  if (priorityOf(id) >= priorityOf(place.request) || waitsForMachines(request, usable)) return undefined;
  const pools = view.observed.pools();
  const open = pools.filter((pool) => pool['hostname'] === place.launcher && isOpen(pool, request, pools));
  const passed = limitsOf(request, place, view).find(
    (limit) => open.some((pool) => limit.spans(pool)) && isTooFull(limit, request, others),
  );
  return passed?.name;
}

/** Returns the limits in which the node counts and for which the waiting request may wait. */
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

/**
 * Returns true if the pool could serve the request now, has no open circuit breaker, and does not defer to another
 * pool.
 */
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

/** Returns true if fewer machines are free than the request needs, so that it waits for machines instead of a limit. */
function waitsForMachines({ node_types: labels }: JsonObject, others: readonly Seen[]): boolean {
  const wanted = MACHINE_LABELS.flatMap((label) => stringsOf(labels).filter((name) => name === label));
  const free = others.filter(
    ({ data: { state, allocated_to: request, type } }) =>
      state === 'ready' && request === null && wanted.some((label) => stringsOf(type).includes(label)),
  );
  return free.length < wanted.length;
}

/**
 * Returns true if `others` leave too few places for the waiting request. `others` are the nodes that the launcher knew,
 * without those of the overtaking request. Ready nodes that the waiting request could use do not count.
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
