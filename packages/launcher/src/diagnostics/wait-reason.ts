/** Explains what a request waits for now, over the pools of all launchers, best hope first. */

import type { NodeRequest } from '@nodepool/core';
import type { NodeEntry, PoolComponentData } from '@nodepool/store';
import type { ExplanationSources } from './explanation.js';
import type { PoolWait } from './request-life.js';
import type { LimitFacts } from './timeline-recorder.js';

export interface WaitReason {
  /** `elsewhere`: only another launcher knows; `none`: no pool can serve the request. */
  readonly phase: 'limit' | 'order' | 'capacity' | 'image' | 'elsewhere' | 'none';
  /** One or more sentences without the name of the pool. */
  readonly text: string;
  /** The pool as `provider/pool`. */
  readonly pool: string | null;
  /** Host of the launcher that serves the pool. */
  readonly launcher: string | null;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** What is missing, e.g. `1 instance`. */
  readonly missing: string | null;
  /** Requests or nodes that have what is missing: those with the best prospect to give it back. */
  readonly heldBy: readonly { readonly kind: 'request' | 'node'; readonly id: string }[];
}

type Sources = Pick<ExplanationSources, 'store' | 'activity' | 'timelines' | 'standing'>;

/** Hopes in their order; a pool of another launcher may be about to serve the request. */
const HOPE = { limit: 0, order: 1, elsewhere: 2, capacity: 3, image: 4, paused: 5, leaves: 6 } as const;

/** Number of nodes that are named as users of a limit. */
const MAX_HOLDERS = 5;
const MAX_LABELS = 8;

interface Ranked {
  readonly rank: number;
  readonly reason: WaitReason;
}

/** Returns the reasons of a waiting request, one per pool that can serve it, best hope first; never empty. */
export function waitReasons(sources: Sources, request: NodeRequest): WaitReason[] {
  const standing = sources.standing(request.id);
  const first = standing === undefined ? request.id : standing.first;
  const life = sources.timelines.request(first);
  const waits = new Map((life?.poolWaits() ?? []).map((wait) => [wait.pool, wait]));
  const since = sinceOf(sources, request);
  const own = new Set(sources.activity().flatMap(({ pools }) => pools.map(({ id }) => id)));
  const ranked: Ranked[] = [];
  for (const pool of sources.store.components.pools()) {
    if (!isCandidate(request, pool)) continue;
    const name = `${pool.provider_name}/${pool.name}`;
    const where = { pool: name, launcher: pool.hostname };
    const wait = waits.get(name);
    if (!own.has(pool.id)) ranked.push(foreign(pool, where, since));
    else if (wait !== undefined) ranked.push(ofWait(sources, request, wait, where, standing));
    else ranked.push(undecided(life?.refusalOf(name), where, since));
  }
  if (ranked.length === 0) return [none(request, since)];
  return ranked.sort((a, b) => a.rank - b.rank || a.reason.since - b.reason.since).map(({ reason }) => reason);
}

/** Returns the reason with its pool, as sentences. */
export function reasonText({ pool, text }: Pick<WaitReason, 'pool' | 'text'>): string {
  return pool === null ? text : `${pool}: ${text}`;
}

function isCandidate(request: NodeRequest, pool: PoolComponentData): boolean {
  if (request.declined_by.includes(pool.id)) return false;
  return request.node_types.every((label) => pool.supported_labels.includes(label));
}

function sinceOf({ timelines }: Sources, { id, created_time: created, state_time: changed }: NodeRequest): number {
  return timelines.request(id)?.segments.at(-1)?.from ?? (created ?? changed) * 1000;
}

type Where = Pick<WaitReason, 'pool' | 'launcher'>;

function ofWait(
  sources: Sources,
  request: NodeRequest,
  wait: PoolWait,
  where: Where,
  standing: ReturnType<Sources['standing']>,
): Ranked {
  const { kind, reason, limit, since, behind } = wait;
  const holders = limit === undefined ? [] : holdersOf(sources, limit, wait.pool, request);
  const use = limit === undefined || kind !== 'limit' ? '' : ` ${describeHolders(holders)}`;
  const nodes = heldLongest(holders).map(({ id }) => ({ kind: 'node' as const, id }));
  const missing = limit === undefined ? null : missingOf(limit);
  if (standing === undefined || standing.ahead === 0) {
    const heldBy = behind === undefined ? nodes : [{ kind: 'request' as const, id: behind }];
    return { rank: HOPE[kind], reason: { ...where, phase: kind, text: `${reason}.${use}`, since, missing, heldBy } };
  }
  const { first, ahead } = standing;
  const before =
    ahead === 1 ? `request ${first}, which needs the same, comes` : `${ahead} requests that need the same come`;
  const next = ahead === 1 ? 'it' : `the next of them, ${first},`;
  const text = `${before} first; ${next} waits because ${reason}.${use}`;
  const heldBy = [{ kind: 'request' as const, id: first }, ...nodes];
  const own = sources.timelines.request(request.id)?.segments.at(-1)?.from ?? since;
  return { rank: HOPE[kind], reason: { ...where, phase: 'order', text, since: own, missing, heldBy } };
}

function foreign({ hostname, paused }: PoolComponentData, where: Where, since: number): Ranked {
  const text = paused
    ? `launcher ${hostname} serves this pool and reports that requests wait there; ask it for the reason.`
    : `launcher ${hostname} serves this pool and has not accepted the request yet; ask it for the reason.`;
  const rank = paused ? HOPE.paused : HOPE.elsewhere;
  return { rank, reason: { ...where, phase: 'elsewhere', text, since, missing: null, heldBy: [] } };
}

function undecided(refusal: string | undefined, where: Where, since: number): Ranked {
  const nothing = { missing: null, heldBy: [], since };
  if (refusal !== undefined) {
    return {
      rank: HOPE.leaves,
      reason: { ...where, ...nothing, phase: 'order', text: `it leaves it to other pools: ${refusal}.` },
    };
  }
  return { rank: HOPE.order, reason: { ...where, ...nothing, phase: 'order', text: 'it has not decided yet.' } };
}

function none({ node_types: labels, declined_by: declined }: NodeRequest, since: number): WaitReason {
  const names = [...new Set(labels)].slice(0, MAX_LABELS).join(', ');
  const others = declined.length === 0 ? 'No registered pool' : 'No registered pool that has not declined it';
  const text = `${others} has ${names}.`;
  return { phase: 'none', text, pool: null, launcher: null, since, missing: null, heldBy: [] };
}

function missingOf({ resource, limit, used, needed }: LimitFacts): string {
  const missing = Math.max(needed - Math.max(0, limit - used), 0);
  return `${missing} ${missing === 1 ? resource.replace(/s$/u, '') : resource}`;
}

/** Returns the nodes that count for the limit. */
function holdersOf(
  { store }: Sources,
  limit: LimitFacts,
  pool: string,
  { tenant_name: tenant }: NodeRequest,
): NodeEntry[] {
  const slash = pool.indexOf('/');
  const [provider, poolName] = [pool.slice(0, slash), pool.slice(slash + 1)];
  switch (limit.scope) {
    case 'pool':
      return [...store.nodes.ofProvider(provider)].filter(({ node }) => node.pool === poolName);
    case 'provider':
      return [...store.nodes.ofProvider(provider)];
    case 'tenant':
      return [...store.nodes.all()].filter(({ node }) => node.tenant_name === tenant);
  }
}

/** Returns the nodes that have been in use for the longest time. */
function heldLongest(nodes: readonly NodeEntry[]): NodeEntry[] {
  return nodes
    .filter(({ node }) => node.state === 'in-use' || node.state === 'hold')
    .sort((a, b) => a.node.state_time - b.node.state_time)
    .slice(0, MAX_HOLDERS);
}

function describeHolders(nodes: readonly NodeEntry[]): string {
  if (nodes.length === 0) return 'No node of Nodepool uses it.';
  const counts = new Map<string, number>();
  for (const { node } of nodes) counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([state, count]) => `${count} ${state}`);
  return `Its nodes: ${parts.join(', ')}.`;
}
