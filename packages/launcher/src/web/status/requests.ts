/** Requests that are not fulfilled yet, and why. */

import { compareRequests, type NodeRequest, type RequestEntry } from '@nodepool/core';
import { explainRequest } from '../../observe/explain-request.js';
import type { PoolExplanation } from '../../observe/explanation.js';
import type { RequestsStatus, RequestStatus } from './client/status.js';
import { shortened, type Observed } from './sources.js';

/** A page that lists more is not read; `/request-list` has them all. */
const MAX_LISTED = 25;
const MAX_LABELS = 8;

export function requestsStatus(observed: Observed): RequestsStatus {
  const { requests } = observed.store;
  const waiting = [...requests.inState('requested')];
  const pending = [...requests.inState('pending')];
  const order = (a: RequestEntry, b: RequestEntry): number => compareRequests(a.request, b.request);
  const first = [...waiting.sort(order), ...pending.sort(order)].slice(0, MAX_LISTED);
  return {
    waiting: waiting.length,
    pending: pending.length,
    oldest: waiting.reduce<number | null>((oldest, { request }) => Math.min(oldest ?? Infinity, since(request)), null),
    first: first.map((entry) => requestStatus(observed, entry)),
  };
}

function requestStatus(observed: Observed, { id, request }: RequestEntry): RequestStatus {
  const counts = new Map<string, number>();
  for (const label of request.node_types) counts.set(label, (counts.get(label) ?? 0) + 1);
  return {
    id,
    state: request.state === 'pending' ? 'pending' : 'requested',
    labels: [...counts].slice(0, MAX_LABELS).map(([label, count]) => ({ label: shortened(label, 80), count })),
    since: since(request),
    requestor: shortened(request.requestor ?? '', 80),
    reason: shortened(reasonOf(observed, request)),
  };
}

function since({ created_time: created, state_time: changed }: NodeRequest): number {
  return created ?? changed;
}

/**
 * Of those that want the same, a pool decides about the first only: the others' latest decisions say less than what the
 * pools are up to.
 */
function reasonOf({ store, clock, decisions, activity }: Observed, request: NodeRequest): string {
  const sources = { store, clock, decisions, activity: () => activity };
  const explanation = explainRequest(sources, request.id);
  if (request.state === 'pending' || explanation === undefined) return explanation?.summary ?? '';
  const latest = explanation.decisions.reduce<(typeof explanation.decisions)[number] | undefined>(
    (newest, decision) => (newest === undefined || decision.last >= newest.last ? decision : newest),
    undefined,
  );
  if (latest !== undefined && latest.reason !== null) return `${latest.by} ${latest.decision}: ${latest.reason}.`;
  return ofPools(request, explanation.pools);
}

function ofPools(request: NodeRequest, pools: readonly PoolExplanation[]): string {
  const able = pools.filter(({ says }) => !says.startsWith('has no label'));
  if (able.length > 0) return able.map(({ pool, says }) => `${pool} ${says}.`).join(' ');
  const labels = [...new Set(request.node_types)].slice(0, MAX_LABELS).join(', ');
  return `No registered pool has ${labels}: no launcher serves it, or its provider is not ready.`;
}
