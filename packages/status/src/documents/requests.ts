/** The documents of requests, those that ended in the last day included. */

import { compareRequests, type NodeRequest, type RequestState } from '@nodepool/core';
import { explainRequest } from '../explain/explain-request.js';
import type { RequestLife } from '../timeline/request-life.js';
import { WaitReasons, type WaitReason } from '../explain/wait-reason.js';
import type { ReasonGroup, RequestCounts, RequestDocument, RequestRow, RequestsDocument } from '../client/model.js';
import { jobLink } from './job-link.js';
import { oncePerMoment, shortened, type Observed } from './sources.js';
import { select, type ListDefinition } from './lists.js';
import { nodeRow } from './nodes.js';
import type { Parameters } from './parameters.js';
import { countedLabels, decisions, SHORT, textOrNull, timeline, waitStatus } from './texts.js';

const MAX_GROUPS = 50;
const DAY_MS = 24 * 3_600_000;

/** A request with its record, its life, or both. */
interface Known {
  readonly id: string;
  readonly state: RequestState | 'cancelled' | 'unseen';
  readonly labels: readonly string[];
  readonly requestor: string | null;
  readonly tenant: string | null;
  readonly priority: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
  readonly request: NodeRequest | undefined;
  readonly life: RequestLife | undefined;
}

const STATE_FILTERS: Readonly<Record<Known['state'], string>> = {
  requested: 'waiting',
  pending: 'progress',
  fulfilled: 'fulfilled',
  failed: 'failed',
  cancelled: 'cancelled',
  unseen: 'unseen',
};

const LIST: ListDefinition<Known> = {
  values: {
    state: ({ state }) => [STATE_FILTERS[state]],
    label: ({ labels }) => [...new Set(labels)],
    pool: ({ life }) => poolsOf(life),
    requestor: ({ requestor }) => [requestor ?? ''],
  },
  texts: ({ id, requestor, tenant, labels, request }) => [id, requestor, tenant, request?.event_id ?? null, ...labels],
  sorts: {
    id: ({ id }) => id,
    age: ({ created }) => -created,
    created: ({ created }) => created,
    ended: ({ life }) => life?.end ?? 0,
    duration: ({ life }) => (life?.end === undefined ? 0 : life.end - life.created),
    state: ({ state }) => STATE_FILTERS[state],
    requestor: ({ requestor }) => requestor ?? '',
    tenant: ({ tenant }) => tenant ?? '',
    priority: ({ priority }) => priority,
  },
};

export const REQUEST_LIST = {
  filters: ['state', 'label', 'pool', 'requestor', 'q'],
  states: Object.values(STATE_FILTERS),
  sorts: Object.keys(LIST.sorts),
} as const;

export function requestsDocument(observed: Observed, parameters: Parameters): RequestsDocument {
  const reasons = reasonsOf(observed);
  const { records, paging, facets } = select(knownRequests(observed), LIST, parameters);
  return {
    counts: requestCounts(observed),
    reasons: reasons.groups(),
    facets: {
      label: facets.get('label') ?? [],
      pool: facets.get('pool') ?? [],
      requestor: facets.get('requestor') ?? [],
    },
    paging,
    rows: records.map((known) => requestRow(known, reasons)),
  };
}

/** Returns the newest requests that `of` selects; waiting requests come first. */
export function requestRows(observed: Observed, of: (known: Known) => boolean, limit: number): RequestRow[] {
  const reasons = reasonsOf(observed);
  const rows: RequestRow[] = [];
  for (const known of knownRequests(observed)) {
    if (rows.length >= limit) break;
    if (of(known)) rows.push(requestRow(known, reasons));
  }
  return rows;
}

export const requestCounts = oncePerMoment(({ store, clock, status }): RequestCounts => {
  const oldest = clock.now() - DAY_MS;
  const counts = { fulfilled: 0, failed: 0 };
  for (const bucket of status.recorder.history.buckets()) {
    if (bucket.start < oldest) continue;
    counts.fulfilled += bucket.fulfilled;
    counts.failed += bucket.failed;
  }
  let waiting = 0;
  let longest = Infinity;
  for (const { request } of store.requests.inState('requested')) {
    waiting += 1;
    longest = Math.min(longest, request.created_time ?? request.state_time);
  }
  const progress = [...store.requests.inState('pending')].length;
  return { ...counts, waiting, progress, oldest: waiting === 0 ? null : longest };
});

/** Returns the numbers of requests that pools of this launcher hold, by provider. */
export function acceptedByProvider({ store, timelines }: Observed): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of store.requests.inState('pending')) {
    const holder = timelines.request(id)?.holder;
    if (holder === undefined) continue;
    const provider = holder.slice(0, holder.indexOf('/'));
    counts.set(provider, (counts.get(provider) ?? 0) + 1);
  }
  return counts;
}

/** Returns undefined if nothing is known of the request. */
export function requestDocument(observed: Observed, { id }: Parameters): RequestDocument | undefined {
  const { store, timelines } = observed;
  const entry = store.requests.get(id);
  const life = timelines.request(id);
  const explanation = explainRequest(observed, id);
  if (explanation === undefined) return undefined;
  const known = entry === undefined ? fromLife(life) : fromRecord(entry.request, life);
  const waiting = entry?.request.state === 'requested' ? new WaitReasons(observed).of(entry.request) : [];
  const nodes = new Set([
    ...store.nodes.allocatedTo(id).map((node) => node.id),
    ...(life?.ended?.nodes ?? []),
    ...(life?.attempts ?? []).map(({ node }) => node),
  ]);
  return {
    request: known === undefined ? null : requestRow(known, reasonsOf(observed)),
    summary: shortened(explanation.summary, 2000),
    facts: explanation.facts,
    job: jobLink(observed, entry?.request.requestor_data ?? null),
    reason: waiting[0] === undefined ? null : waitStatus(waiting[0]),
    reasons: waiting.map(waitStatus),
    timeline: life === undefined ? [] : timeline(life.closed()),
    attempts: (life?.attempts ?? []).map(({ node, number, pool, label, offer, ended, error }) => ({
      ...{ node, number, pool, label, offer, ended: ended / 1000 },
      error: error === undefined ? null : { code: error.code, text: shortened(error.message) },
    })),
    nodes: [...nodes].sort().map((node) => {
      const record = store.nodes.get(node);
      const nodeLife = timelines.node(node);
      return {
        id: node,
        node: record === undefined ? null : nodeRow(record, store),
        timeline: nodeLife === undefined ? [] : timeline(nodeLife.closed()),
      };
    }),
    poolAnswers: explanation.pools.map(({ pool, launcher, says }) => ({ pool, launcher, says: shortened(says) })),
    decisions: decisions(observed.decisions.of('request', id)),
  };
}

/** Yields waiting requests in the order of service, then those in progress, then those that ended, newest first. */
function* knownRequests({ store, status, clock, queuePosition }: Observed): Iterable<Known> {
  const { timelines } = status.recorder;
  for (const state of ['requested', 'pending'] as const) {
    const entries = [...store.requests.inState(state)].map(({ request }) => request);
    for (const request of inOrder(entries, queuePosition)) yield fromRecord(request, timelines.request(request.id));
  }
  const oldest = clock.now() - DAY_MS;
  const ended = [...timelines.failedRequests.newestFirst(), ...timelines.endedRequests.newestFirst()];
  for (const life of ended.sort((a, b) => (b.end ?? 0) - (a.end ?? 0))) {
    const known = (life.end ?? 0) < oldest ? undefined : fromLife(life);
    if (known !== undefined) yield known;
  }
}

/** Sorts the requests by the order of service: by their places under fair shares, else by priority. */
function inOrder(requests: NodeRequest[], queuePosition: Observed['queuePosition']): NodeRequest[] {
  const places = new Map(requests.map(({ id }) => [id, queuePosition(id)?.place ?? Infinity]));
  const placeOf = ({ id }: NodeRequest): number => places.get(id) ?? Infinity;
  return requests.sort((a, b) => (placeOf(a) === placeOf(b) ? compareRequests(a, b) : placeOf(a) - placeOf(b)));
}

function fromRecord(request: NodeRequest, life: RequestLife | undefined): Known {
  const { id, state, node_types: labels, requestor, tenant_name: tenant, relative_priority: priority } = request;
  const created = life?.created ?? (request.created_time ?? request.state_time) * 1000;
  return { id, state, labels, requestor, tenant, priority, created, request, life };
}

function fromLife(life: RequestLife | undefined): Known | undefined {
  if (life?.ended === undefined) return undefined;
  return { ...life.facts, state: life.ended.result, created: life.created, request: undefined, life };
}

function poolsOf(life: RequestLife | undefined): string[] {
  if (life === undefined) return [];
  return life.pool === undefined ? life.poolWaits().map(({ pool }) => pool) : [life.pool];
}

function requestRow(known: Known, reasons: Reasons): RequestRow {
  const { id, state, labels, requestor, tenant, priority, created, life } = known;
  const last = life?.segments.at(-1);
  const reason = known.request?.state === 'requested' ? reasons.of(known.request) : undefined;
  const phase = life?.end === undefined ? (last?.phase ?? null) : null;
  return {
    id,
    state,
    labels: countedLabels(labels),
    created: created / 1000,
    ended: life?.end === undefined ? null : life.end / 1000,
    requestor: shortened(requestor ?? '', SHORT),
    tenant: textOrNull(tenant, SHORT),
    priority,
    phase: reason === undefined ? phase : reason.phase === 'none' ? null : reason.phase,
    phaseSince: last === undefined ? null : last.from / 1000,
    reason: shortened(reasons.text(known)),
    pool: reason === undefined ? (life?.pool ?? null) : reason.pool,
  };
}

export const reasonsOf = oncePerMoment((observed) => new Reasons(observed));

/** The reasons of waiting requests at one moment. Requests with the same needs wait for the same reason. */
class Reasons {
  private readonly byFirst = new Map<string, WaitReason | undefined>();
  private readonly waits: WaitReasons;
  private grouped: ReasonGroup[] | undefined;

  constructor(private readonly observed: Observed) {
    this.waits = new WaitReasons(observed);
  }

  /** Returns the reason of the first request with the same needs. */
  of(request: NodeRequest): WaitReason | undefined {
    const { store, queuePosition } = this.observed;
    const first = queuePosition(request.id)?.first ?? request.id;
    if (!this.byFirst.has(first)) {
      const [best] = this.waits.of(store.requests.get(first)?.request ?? request);
      this.byFirst.set(first, best);
    }
    return this.byFirst.get(first);
  }

  text({ request, life }: Known): string {
    if (request?.state === 'requested') {
      const reason = this.of(request);
      const { ahead = 0, order } = this.observed.queuePosition(request.id) ?? {};
      const place = order === undefined ? '' : `${order}; `;
      const first = ahead === 1 ? '1 request that needs the same comes' : `${ahead} requests that need the same come`;
      return reason === undefined ? '' : `${place}${ahead === 0 ? '' : `${first} first; `}${reason.text}`;
    }
    if (life?.end === undefined) return life?.segments.at(-1)?.detail ?? '';
    return life.ended?.reason ?? '';
  }

  /** Returns the waiting requests grouped by reason, largest group first. */
  groups(): readonly ReasonGroup[] {
    return (this.grouped ??= this.group());
  }

  private group(): ReasonGroup[] {
    interface Group {
      readonly reason: WaitReason;
      count: number;
      oldest: number;
      readonly labels: Set<string>;
    }
    const groups = new Map<string, Group>();
    for (const { request } of this.observed.store.requests.inState('requested')) {
      const reason = this.of(request);
      if (reason === undefined) continue;
      const key = JSON.stringify([reason.phase, reason.pool ?? reason.text]);
      const group = groups.get(key) ?? { reason, count: 0, oldest: Infinity, labels: new Set<string>() };
      groups.set(key, group);
      group.count += 1;
      group.oldest = Math.min(group.oldest, request.created_time ?? request.state_time);
      for (const label of request.node_types) if (group.labels.size < 20) group.labels.add(shortened(label, SHORT));
    }
    return [...groups.values()]
      .sort((a, b) => b.count - a.count || a.oldest - b.oldest)
      .slice(0, MAX_GROUPS)
      .map(({ reason: { phase, pool, text }, count, oldest, labels }) => ({
        ...{ phase, pool, count, oldest },
        text: shortened(text),
        labels: [...labels],
      }));
  }
}
