/** Creates the section of unfulfilled requests, with the reason why each waits. */

import { compareRequests, type NodeRequest } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import { explainRequest, waitingReason } from '../../diagnostics/explain-request.js';
import type { RequestsStatus, RequestStatus } from './client/status.js';
import { shortened, type Observed } from './sources.js';

/** Number of requests on the page, which has to remain readable; `/request-list` has all of them. */
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

function reasonOf(observed: Observed, request: NodeRequest): string {
  if (request.state === 'requested') return waitingReason(observed, request);
  return explainRequest(observed, request.id)?.summary ?? '';
}
