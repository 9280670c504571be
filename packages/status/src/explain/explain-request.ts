/** Explains a request: the pools that could serve it, their decisions, and what the request waits for. */

import type { NodeRequest } from '@nodepool/core';
import type { PoolComponentData, RequestEntry } from '@nodepool/store';
import { describePool as describeRecord, isPoolAt, LAUNCHER_RETURN_MS, SERVES_REQUESTS } from '@nodepool/store';
import { type Explanation, type PoolExplanation } from './explanation-text.js';
import { describeObstacle } from '../facts/describe-obstacle.js';
import type { PoolActivity } from '../facts/activity.js';
import type { OfferHealth } from '../facts/health.js';
import type { ExplanationSources } from './explanation.js';
import { describeOutages, explainDecisions, explainLife, failureOf, latestDecision, sentence } from './explanation.js';
import type { RequestLife } from '../timeline/request-life.js';
import { reasonText, WaitReasons } from './wait-reason.js';

/** Number of pools that a summary names at most. */
const MAX_POOLS = 4;

/** Returns undefined if the request does not exist and nothing about it is recorded. */
export function explainRequest(sources: ExplanationSources, id: string): Explanation | undefined {
  const { store, decisions } = sources;
  const entry = store.requests.get(id);
  const decided = decisions.of('request', id);
  const life = sources.timelines.request(id);
  if (entry === undefined && decided.length === 0 && life === undefined) return undefined;
  const summary = entry === undefined ? `The request is deleted.${endOf(life)}` : summaryOf(sources, entry);
  const isKnown = entry?.request.state === 'requested' || (entry === undefined && life?.ended !== undefined);
  const latest = isKnown ? undefined : latestDecision(decided);
  return {
    kind: 'request',
    id,
    summary: latest === undefined ? summary : `${summary} ${sentence(`Last decision here: ${latest}`)}`,
    facts: entry === undefined ? resultOf(life) : factsOf(entry),
    pools: entry === undefined ? [] : poolsOf(sources, entry.request),
    timeline: explainLife(life, sources.clock.now()),
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
      return `Failed: ${request.declined_by.length} pools declined it, and there is no other pool.${refusalOf(sources, id)}`;
    case 'pending':
      return pendingSummary(sources, request, locked);
    case 'requested':
      return `Requested. ${orderOf(sources, id)}${waitingReason(sources, request)}`;
  }
}

/** Returns the place in the order of fair shares, as a sentence before another one. */
function orderOf({ queuePosition }: ExplanationSources, id: string): string {
  const order = queuePosition(id)?.order;
  return order === undefined ? '' : `In the order of fair shares, ${sentence(order)} `;
}

/** Returns why a request is not served yet, as sentences about the pools that may serve it, most likely first. */
function waitingReason(sources: Omit<ExplanationSources, 'decisions'>, request: NodeRequest): string {
  return new WaitReasons(sources).of(request).slice(0, MAX_POOLS).map(reasonText).join(' ');
}

function resultOf(life: RequestLife | undefined): Explanation['facts'] {
  return life?.ended === undefined ? {} : { result: life.ended.result };
}

/** Returns how a deleted request ended, as a sentence after another one. */
function endOf(life: RequestLife | undefined): string {
  switch (life?.ended?.result) {
    case 'fulfilled':
      return ` It was fulfilled with ${life.ended.nodes.join(', ')}.`;
    case 'failed':
      return ` ${sentence(`It failed: ${life.ended.reason ?? 'every pool declined it'}`)}`;
    case 'cancelled':
      return ' Its requestor deleted it before it was served.';
    case 'unseen':
      return ' This launcher did not see how it ended; another one may have served it.';
    case undefined:
      return '';
  }
}

/** Returns the reasons of the pools, as a sentence after another one. */
function refusalOf({ timelines }: ExplanationSources, id: string): string {
  const reason = timelines.request(id)?.ended?.reason;
  return reason === undefined ? '' : ` ${sentence(`The reasons: ${reason}`)}`;
}

function pendingSummary({ store }: ExplanationSources, { id, node_types }: NodeRequest, locked: boolean): string {
  const entries = store.nodes.allocatedTo(id);
  const nodes = entries.map(({ id: nodeId, node }) => `${nodeId} ${node.state}`);
  const having = nodes.length === 0 ? 'no node yet' : nodes.join(', ');
  if (locked) return `Pending; the pool that accepted it works on it: ${having}.`;
  const pools = [...store.components.pools()];
  const hasNodes = entries.some(({ node }) => pools.some((pool) => isPoolAt(pool, node)));
  const { components } = store;
  const awaited = components
    .returningPools()
    .filter(({ pool }) => !components.hasLauncher(pool.hostname))
    .find(({ pool }) => entries.some(({ node }) => isPoolAt(pool, node)));
  const next = hasNodes
    ? 'a pool that has its nodes resumes it'
    : pools.some(({ supported_labels: supported }) => node_types.every((label) => supported.includes(label)))
      ? 'a pool that has its labels continues it'
      : awaited !== undefined
        ? `launcher ${awaited.pool.hostname}, which has its nodes, has left; the request waits ${LAUNCHER_RETURN_MS / 60_000} minutes for its return`
        : 'no registered pool can continue it, so it soon waits again';
  return `Pending, and no launcher holds it: ${next} (${having}).`;
}

function poolsOf(sources: ExplanationSources, request: NodeRequest): PoolExplanation[] {
  const activities = activitiesOf(sources);
  return [...sources.store.components.pools()].map((pool) => ({
    pool: nameOf(pool),
    launcher: pool.hostname,
    own: activities.has(pool.id),
    says: `${describePool(request, pool, activities.get(pool.id))}${describeOutages(pool, request.node_types)}`,
  }));
}

/** A pool of this launcher, with the failure of its provider, and the health of its offers. */
interface OwnPool extends PoolActivity {
  readonly failure: string | undefined;
  readonly offers: readonly OfferHealth[];
}

function activitiesOf({ activity }: ExplanationSources): Map<string, OwnPool> {
  const own = activity().flatMap(({ pools, state, offers, ...provider }) => {
    const reason = failureOf(provider);
    return pools.map((pool) => ({
      ...pool,
      failure: reason === undefined ? undefined : `its provider is ${state}: ${reason}`,
      offers: offers.filter((offer) => offer.pool === pool.pool),
    }));
  });
  return new Map(own.map((pool) => [pool.id, pool]));
}

/** Returns the pool's name in the form that decisions use. */
function nameOf({ provider_name: provider, name }: PoolComponentData): string {
  return `${provider}/${name}`;
}

/** Returns the state of the pool from the registry and, for a pool of this launcher, from its activity. */
function describePool(request: NodeRequest, pool: PoolComponentData, activity: OwnPool | undefined): string {
  if (request.declined_by.includes(pool.id)) {
    const reason = request.decline_reasons[pool.id];
    return reason === undefined ? 'declined it' : `declined it: ${reason}`;
  }
  const missing = request.node_types.filter((label) => !pool.supported_labels.includes(label));
  if (missing.length > 0) return `has no label ${[...new Set(missing)].join(', ')}`;
  const failure = activity?.failure === undefined ? '' : `, but ${activity.failure}`;
  const has = `has all its labels${failure}`;
  if (activity === undefined) {
    const says = describeRecord(pool, request.node_types);
    return says === SERVES_REQUESTS ? has : `${has}, but ${says}`;
  }
  const obstacle = activity.labels.find(
    ({ label, obstacle: why }) => why !== undefined && request.node_types.includes(label),
  );
  if (obstacle !== undefined) return `${has}, but: ${obstacle.obstacle ?? ''}`;
  if (activity.requests.some(({ request: id }) => id === request.id)) return `${has}; works on it`;
  const closed = failure === '' ? closedOffers(request, activity.offers) : [];
  if (closed.length > 0) return `${has}, but: ${closed.join('; ')}`;
  if (activity.waiting === 0) return has;
  const next = activity.next === request.id ? 'this is the next' : `the next is ${activity.next ?? ''}`;
  const waiting = activity.waiting === 1 ? '1 request waits' : `${activity.waiting} requests wait`;
  return `${has}; ${waiting} for capacity, ${next}`;
}

/** Number of offers that an explanation names at most. */
const MAX_OFFERS = 3;

/** Returns why offers of the request's labels are out of service. */
function closedOffers({ node_types: labels }: NodeRequest, offers: readonly OfferHealth[]): string[] {
  return offers
    .flatMap(({ label, name, obstacle }) =>
      obstacle === undefined || !labels.includes(label) ? [] : [describeObstacle(name, obstacle)],
    )
    .slice(0, MAX_OFFERS);
}
