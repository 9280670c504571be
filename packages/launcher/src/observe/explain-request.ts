/** Explains a request: which pools could serve it, what each decided and when, what it waits for. */

import type { NodeRequest, PoolComponentData, RequestEntry } from '@nodepool/core';
import type { PoolActivity } from './activity.js';
import {
  explainDecisions,
  latestDecision,
  type Explanation,
  type ExplanationSources,
  type PoolExplanation,
} from './explanation.js';

/** Undefined: there is no such request, and nothing is known of one that was. */
export function explainRequest(sources: ExplanationSources, id: string): Explanation | undefined {
  const { store, decisions } = sources;
  const entry = store.requests.get(id);
  const decided = decisions.of('request', id);
  if (entry === undefined && decided.length === 0) return undefined;
  const summary = entry === undefined ? 'The request is gone.' : summaryOf(sources, entry);
  const latest = latestDecision(decided);
  return {
    kind: 'request',
    id,
    summary: latest === undefined ? summary : `${summary} Last decision here: ${latest}.`,
    facts: entry === undefined ? {} : factsOf(entry),
    pools: entry === undefined ? [] : poolsOf(sources, entry.request),
    decisions: explainDecisions(decided),
  };
}

function factsOf({ request, locked }: RequestEntry): Explanation['facts'] {
  return {
    state: request.state,
    state_time: request.state_time,
    created_time: request.created_time,
    locked,
    node_types: request.node_types,
    nodes: request.nodes,
    requestor: request.requestor,
    provider: request.provider,
    tenant_name: request.tenant_name,
    relative_priority: request.relative_priority,
    reuse: request.reuse,
    declined_by: request.declined_by,
    event_id: request.event_id,
  };
}

function summaryOf(sources: ExplanationSources, { id, request, locked }: RequestEntry): string {
  switch (request.state) {
    case 'fulfilled':
      return `Fulfilled with ${request.nodes.join(', ')}; it waits for its requestor to take them.`;
    case 'failed':
      return `Failed: ${request.declined_by.length} pools declined it, and no other is there.`;
    case 'pending':
      return pendingSummary(sources, id, locked);
    case 'requested':
      return 'Requested; it waits for a pool that can serve it.';
  }
}

function pendingSummary({ store }: ExplanationSources, id: string, locked: boolean): string {
  const nodes = store.nodes.allocatedTo(id).map(({ id: nodeId, node }) => `${nodeId} ${node.state}`);
  const having = nodes.length === 0 ? 'no node yet' : nodes.join(', ');
  return locked
    ? `Pending; the pool that accepted it works on it: ${having}.`
    : `Pending, and nobody holds it: it is taken over by a pool that can go on (${having}).`;
}

function poolsOf(sources: ExplanationSources, request: NodeRequest): PoolExplanation[] {
  const activities = new Map(sources.activity().flatMap(({ pools }) => pools.map((pool) => [pool.id, pool] as const)));
  return [...sources.store.components.pools()].map((pool) => ({
    pool: `${pool.provider_name}/${pool.name}`,
    launcher: pool.hostname,
    says: poolSays(request, pool, activities.get(pool.id)),
  }));
}

/** What the registry says of the pool, and, for one of ours, what it is up to. */
function poolSays(request: NodeRequest, pool: PoolComponentData, activity: PoolActivity | undefined): string {
  if (request.declined_by.includes(pool.id)) return 'declined it';
  const missing = request.node_types.filter((label) => !pool.supported_labels.includes(label));
  if (missing.length > 0) return `has no label ${[...new Set(missing)].join(', ')}`;
  const has = 'has all its labels';
  if (activity === undefined) return pool.paused ? `${has}; is short of room` : has;
  const obstacle = activity.labels.find(
    ({ label, obstacle: why }) => why !== undefined && request.node_types.includes(label),
  );
  if (obstacle !== undefined) return `${has}, but: ${obstacle.obstacle ?? ''}`;
  if (activity.requests.some(({ request: id }) => id === request.id)) return `${has}; works on it`;
  if (activity.outOfRoom) return `${has}; launches nothing for a moment, the cloud said that it has no room`;
  if (activity.waiting === 0) return has;
  const next = activity.next === request.id ? 'this is the next' : `the next is ${activity.next ?? ''}`;
  return `${has}; ${activity.waiting} requests wait for room, ${next}`;
}
