/** Explains a label: the pools that serve it, their obstacles, and the numbers of its nodes and requests. */

import type { ReadyTarget } from '@nodepool/config';
import { describePool, SERVES_REQUESTS } from '@nodepool/store';
import { type Explanation, type PoolExplanation } from './explanation-text.js';
import { describeObstacle } from '../facts/describe-obstacle.js';
import type { PoolActivity } from '../facts/activity.js';
import type { OfferHealth } from '../facts/health.js';
import type { ExplanationSources } from './explanation.js';
import { describeOutages, explainDecisions, failureOf, latestDecision, sentence } from './explanation.js';

/** Returns undefined if no pool, node, request or recorded decision has the label. */
export function explainLabel(sources: ExplanationSources, label: string): Explanation | undefined {
  const decided = sources.decisions.of('label', label);
  const pools = poolsOf(sources, label);
  const nodes = nodesByState(sources, label);
  const wanted = waitingRequests(sources, label);
  const known = pools.length > 0 || nodes.size > 0 || wanted > 0 || decided.length > 0;
  if (!known) return undefined;
  const latest = latestDecision(decided);
  const having = nodes.size === 0 ? 'no node' : [...nodes].map(([state, count]) => `${count} ${state}`).join(', ');
  const names = [...new Set(pools.map(({ pool }) => pool))];
  const served = names.length === 0 ? 'No pool serves it' : `Served by ${names.join(', ')}`;
  const requests =
    wanted === 1 ? '1 request that is not fulfilled wants' : `${wanted} requests that are not fulfilled want`;
  const target = sources.readyTarget(label);
  const summary = `${served}; it has ${having}; ${requests} it.${describeTarget(target)}`;
  return {
    kind: 'label',
    id: label,
    summary: latest === undefined ? summary : `${summary} ${sentence(`Last decision here: ${latest}`)}`,
    facts: {
      nodes: Object.fromEntries(nodes),
      requests: wanted,
      ready_target: target?.count ?? 0,
      ready_target_reason: target?.reason ?? null,
    },
    pools,
    timeline: [],
    decisions: explainDecisions(decided),
  };
}

/** Returns a sentence with a leading space; empty for a label that keeps no nodes ready. */
function describeTarget(target: ReadyTarget | undefined): string {
  if (target === undefined || target.count === 0) return '';
  const nodes = target.count === 1 ? 'node' : 'nodes';
  return ` It should have ${target.count} ready ${nodes} (${target.reason}).`;
}

function poolsOf({ store, activity }: ExplanationSources, label: string): PoolExplanation[] {
  const here = new Map(
    activity().flatMap(({ pools, state, offers, ...provider }) =>
      pools.map((pool) => [pool.id, { ...pool, state, failure: failureOf(provider), offers }] as const),
    ),
  );
  return [...store.components.pools()]
    .filter((pool) => pool.supported_labels.includes(label))
    .map((pool) => {
      const own = here.get(pool.id);
      const obstacle = own?.labels.find((each) => each.label === label)?.obstacle;
      const usage = own === undefined ? '' : `; ${usageOf(own)}`;
      const failure = own?.failure === undefined ? '' : `; its provider is ${own.state}: ${own.failure}`;
      const serves = failure === '' || own?.state === 'degraded' ? 'can serve it' : 'cannot serve it now';
      const record = describePool(own === undefined ? pool : { ...pool, trouble: null }, [label]);
      const says = `${record === SERVES_REQUESTS ? serves : record}${failure}${usage}`;
      const offers = (own?.offers ?? []).filter((offer) => offer.pool === pool.name && offer.label === label);
      return {
        pool: `${pool.provider_name}/${pool.name}`,
        launcher: pool.hostname,
        own: own !== undefined,
        says: `${obstacle ?? says}${offers.map(describeOffer).join('')}${describeOutages(pool, [label])}`,
      };
    });
}

function describeOffer({ name, obstacle }: OfferHealth): string {
  return obstacle === undefined ? `; ${name}: in service` : `; ${describeObstacle(name, obstacle)}`;
}

function usageOf({ used, limit }: Pick<PoolActivity, 'used' | 'limit'>): string {
  const [amount, most] = [amounts(used), amounts(limit)];
  return `uses ${amount === '' ? 'nothing' : amount}${most === '' ? '' : ` of ${most}`}`;
}

function amounts(resources: Readonly<Record<string, number>>): string {
  return Object.entries(resources)
    .map(([name, amount]) => `${amount} ${amount === 1 ? name.replace(/s$/u, '') : name}`)
    .join(', ');
}

function nodesByState({ store }: ExplanationSources, label: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { node } of store.nodes.all()) {
    if (node.type.includes(label)) counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
  }
  return counts;
}

function waitingRequests({ store }: ExplanationSources, label: string): number {
  let waiting = 0;
  for (const state of ['requested', 'pending'] as const) {
    for (const { request } of store.requests.inState(state)) if (request.node_types.includes(label)) waiting += 1;
  }
  return waiting;
}
