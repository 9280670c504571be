/** Explains what a request waits for now in the pools of all launchers. The most likely pool comes first. */

import type { NodeRequest } from '@nodepool/core';
import {
  describePool,
  isPoolAt,
  LAUNCHER_RETURN_MS,
  POOL_RETURN_MS,
  SERVES_REQUESTS,
  type DepartedPool,
  type PoolComponentData,
} from '@nodepool/store';
import { sentence, type ExplanationSources } from './explanation.js';
import { LimitHolders } from '../timeline/limit-holders.js';
import type { PoolActivity, QueuePosition } from '../facts/activity.js';
import type { PoolWait } from '../timeline/request-life.js';
import type { LimitFacts } from '../facts/timeline-recorder.js';

export interface WaitReason {
  /** `elsewhere`: only another launcher knows; `none`: no pool can serve the request. */
  readonly phase: 'limit' | 'order' | 'capacity' | 'image' | 'elsewhere' | 'none';
  /** One or more sentences without the name of the pool. */
  readonly text: string;
  /** The pool as `provider/pool`. */
  readonly pool: string | null;
  /** Host of the launcher that serves the pool; for `none`, of the one that was the last to have such a pool. */
  readonly launcher: string | null;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** The missing amount, e.g. `1 instance`. */
  readonly missing: string | null;
  /** Requests or nodes that use what is missing, those that will probably release it first. */
  readonly heldBy: readonly { readonly kind: 'request' | 'node'; readonly id: string }[];
  /** Number of nodes that hold it as well and are not listed. */
  readonly heldByMore: number;
}

type Sources = Pick<ExplanationSources, 'store' | 'activity' | 'timelines' | 'queuePosition' | 'clock'>;

/** Reasons by likelihood of being served soon. A pool of another launcher may be about to serve the request. */
const WAIT_RANK = {
  limit: 0,
  order: 1,
  elsewhere: 2,
  capacity: 3,
  image: 4,
  paused: 5,
  returning: 6,
  leaves: 7,
} as const;

const MAX_LABELS = 8;

interface Ranked {
  readonly rank: number;
  readonly reason: WaitReason;
}

/** The reasons of waiting requests at one moment. Facts that many requests depend on are computed once. */
export class WaitReasons {
  private readonly pools: readonly PoolComponentData[];
  private readonly departed: readonly DepartedPool[];
  /** The pools of this launcher by id. */
  private readonly own: ReadonlyMap<string, PoolActivity>;
  /** The providers of this launcher that launch no nodes at the moment, with the reason. */
  private readonly faults: ReadonlyMap<string, string>;
  private readonly holders: LimitHolders;

  constructor(private readonly sources: Sources) {
    this.pools = [...sources.store.components.pools()];
    this.departed = sources.store.components.returningPools();
    const activities = sources.activity();
    this.own = new Map(activities.flatMap(({ pools }) => pools.map((pool) => [pool.id, pool])));
    this.faults = new Map(
      activities.flatMap(({ provider, state, trouble }) =>
        trouble === undefined || trouble.labels !== undefined
          ? []
          : [[provider, ` Moreover, ${sentence(`the provider is ${state}: ${trouble.fault}`)}`]],
      ),
    );
    this.holders = new LimitHolders(sources.store);
  }

  /** Returns the reasons of a request, one per pool that can serve it, most likely first; never empty. */
  of(request: NodeRequest): WaitReason[] {
    const { timelines } = this.sources;
    const queuePosition = this.sources.queuePosition(request.id);
    const life = timelines.request(queuePosition?.first ?? request.id);
    const waits = new Map((life?.poolWaits() ?? []).map((wait) => [wait.pool, wait]));
    const since = sinceOf(this.sources, request);
    const present = this.pools.filter((pool) => isCandidate(request, pool));
    // Another launcher of the same pool serves what the one that has left would.
    const isServed = ({ provider_name: provider, name: pool }: PoolComponentData): boolean =>
      present.some((other) => isPoolAt(other, { provider, pool }));
    const returns = this.departed.filter(({ pool }) => isCandidate(request, pool) && !isServed(pool));
    const preferred = this.preferredProvider(request, returns);
    const isAlone = present.length === 0;
    const ranked: Ranked[] = returns.map((departed) => this.returning(departed, isAlone));
    for (const pool of present) {
      const name = `${pool.provider_name}/${pool.name}`;
      const where = { pool: name, launcher: pool.hostname };
      const wait = waits.get(name);
      const activity = this.own.get(pool.id);
      if (activity === undefined && preferred !== undefined && preferred !== pool.provider_name) {
        ranked.push(leftTo(preferred, where, since));
      } else if (activity === undefined) ranked.push(foreign(pool, request, where, since));
      else if (wait === undefined) ranked.push(undecided(activity, life?.refusalOf(name), where, since));
      else ranked.push(this.ofWait(request, wait, where, queuePosition, pool.provider_name));
    }
    if (ranked.length === 0) {
      // The last pool may just have declined it.
      const changed = request.declined_by.length === 0 ? 0 : (timelines.request(request.id)?.changedAt ?? 0);
      const last = this.sources.store.components.lastDeparted((pool) => isCandidate(request, pool));
      const own = this.pools.filter(({ id }) => this.own.has(id)).map((pool) => `${pool.provider_name}/${pool.name}`);
      const [left = ''] = own.flatMap((pool) => {
        const refusal = life?.refusalOf(pool);
        return refusal === undefined ? [] : [` ${pool}: ${sentence(refusal)}`];
      });
      return [none(request, Math.max(since, changed), last, left)];
    }
    ranked.sort((a, b) => a.rank - b.rank || a.reason.since - b.reason.since);
    return withoutRepeats(ranked.map(({ reason }) => reason));
  }

  /** Returns the provider that the request asks for, if others leave it to this one. */
  private preferredProvider(request: NodeRequest, returns: readonly DepartedPool[]): string | undefined {
    const { provider } = request;
    if (provider === null) return undefined;
    const isPreferred = (pool: PoolComponentData): boolean =>
      pool.provider_name === provider && isCandidate(request, pool);
    return this.pools.some(isPreferred) || returns.some(({ pool }) => isPreferred(pool)) ? provider : undefined;
  }

  /** Returns the reason for a pool whose launcher may be restarting. `isAlone`: no registered pool has the labels. */
  private returning({ pool, left }: DepartedPool, isAlone: boolean): Ranked {
    const { provider_name: provider, name, hostname } = pool;
    const { clock, store } = this.sources;
    const text = store.components.hasLauncher(hostname)
      ? `launcher ${hostname} no longer serves this pool; the request waits ${POOL_RETURN_MS / 1000} s for it.`
      : `launcher ${hostname} has left; the request waits ${LAUNCHER_RETURN_MS / 60_000} minutes for its return.`;
    // A launcher that is merely restarted is no problem.
    const phase = isAlone && clock.now() - left >= POOL_RETURN_MS ? 'none' : 'elsewhere';
    const reason = { pool: `${provider}/${name}`, launcher: hostname, missing: null, heldBy: [], heldByMore: 0 };
    return { rank: WAIT_RANK.returning, reason: { ...reason, phase, text, since: left } };
  }

  private ofWait(
    request: NodeRequest,
    wait: PoolWait,
    where: Where,
    queuePosition: QueuePosition | undefined,
    provider: string,
  ): Ranked {
    const { kind, reason, limit, behind } = wait;
    const rank = WAIT_RANK[kind];
    const holders = limit === undefined ? undefined : this.holders.of(limit, wait.pool, request.tenant_name);
    const held = holders === undefined || kind !== 'limit' ? '' : ` ${holders.text}`;
    // A wait for capacity has the trouble of the provider as its reason.
    const use = `${held}${kind === 'capacity' ? '' : (this.faults.get(provider) ?? '')}`;
    const nodes = (holders?.longest ?? []).map((id) => ({ kind: 'node' as const, id }));
    const missing = limit === undefined ? null : missingOf(limit);
    const more = holders?.more ?? 0;
    if (queuePosition === undefined || queuePosition.ahead === 0) {
      const heldBy = behind === undefined ? nodes : [{ kind: 'request' as const, id: behind }];
      const { since } = wait;
      const heldByMore = behind === undefined ? more : 0;
      const text = `${sentence(reason)}${use}`;
      return { rank, reason: { ...where, phase: kind, text, since, missing, heldBy, heldByMore } };
    }
    const text = `${describeTurn(queuePosition)} waits because ${sentence(reason)}${use}`;
    const heldBy = [{ kind: 'request' as const, id: queuePosition.first }, ...nodes];
    const since = sinceOf(this.sources, request);
    return { rank, reason: { ...where, phase: 'order', text, since, missing, heldBy, heldByMore: more } };
  }
}

/** Removes reasons about a pool of another launcher whose namesake on the same host has an earlier reason. */
function withoutRepeats(reasons: readonly WaitReason[]): WaitReason[] {
  const namesake = ({ pool, launcher }: WaitReason): number =>
    reasons.findIndex((other) => other.pool === pool && other.launcher === launcher);
  return reasons.filter((reason, index) => reason.phase !== 'elsewhere' || namesake(reason) === index);
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

/** Returns the start of a sentence that names the earlier requests; the reason of the first of them completes it. */
function describeTurn({ first, ahead }: QueuePosition): string {
  if (ahead === 1) return `request ${first}, which needs the same, comes first; it`;
  return `${ahead} requests that need the same come first; the next of them, ${first},`;
}

function foreign(pool: PoolComponentData, { node_types: labels }: NodeRequest, where: Where, since: number): Ranked {
  const says = describePool(pool, labels);
  const served = `launcher ${pool.hostname} serves this pool`;
  const text =
    says === SERVES_REQUESTS
      ? `${served} and has not accepted the request yet; ask it for the reason.`
      : sentence(`${served} and reports that it ${says}; ask it for details`);
  const rank = pool.paused || says !== SERVES_REQUESTS ? WAIT_RANK.paused : WAIT_RANK.elsewhere;
  return { rank, reason: { ...where, phase: 'elsewhere', text, since, missing: null, heldBy: [], heldByMore: 0 } };
}

/** Returns the reason for a pool of another launcher that leaves the request to the provider that it asks for. */
function leftTo(provider: string, where: Where, since: number): Ranked {
  const nothing = { missing: null, heldBy: [], heldByMore: 0 };
  const text = `it leaves the request to provider ${provider}, which the request asks for.`;
  return { rank: WAIT_RANK.leaves, reason: { ...where, ...nothing, phase: 'elsewhere', text, since } };
}

function undecided(pool: PoolActivity, refusal: string | undefined, where: Where, since: number): Ranked {
  const nothing = { missing: null, heldBy: [], heldByMore: 0, since };
  if (refusal !== undefined) {
    return {
      rank: WAIT_RANK.leaves,
      reason: {
        ...where,
        ...nothing,
        phase: 'order',
        text: sentence(`it leaves the request to other pools: ${refusal}`),
      },
    };
  }
  // A pool without capacity considers no further request.
  const [full] = Object.entries(pool.limit).filter(([resource, limit]) => (pool.used[resource] ?? 0) >= limit);
  if (full !== undefined) {
    const [resource, limit] = full;
    const text = `the pool uses ${pool.used[resource] ?? 0} of ${limit} ${resource}.`;
    return { rank: WAIT_RANK.limit, reason: { ...where, ...nothing, phase: 'limit', text } };
  }
  return {
    rank: WAIT_RANK.order,
    reason: { ...where, ...nothing, phase: 'order', text: 'the pool has not decided yet.' },
  };
}

/**
 * `last` is the pool that was the last of those to leave that had its labels; `left`, a sentence about a pool of this
 * launcher that leaves the request to others.
 */
function none(
  { node_types: labels, declined_by: declined }: NodeRequest,
  since: number,
  last: DepartedPool | undefined,
  left: string,
): WaitReason {
  const names = [...new Set(labels)].slice(0, MAX_LABELS).join(', ');
  const single = names.includes(', ') ? 'single ' : '';
  const others = `No ${single}registered pool${declined.length === 0 ? '' : ' that has not declined it'}`;
  const nothing = { pool: null, missing: null, heldBy: [], heldByMore: 0 };
  const text = `${others} has ${names}.${left}`;
  if (last === undefined) return { ...nothing, phase: 'none', text, launcher: null, since };
  const { hostname: launcher, provider_name: provider, name } = last.pool;
  const had = `Pool ${provider}/${name} of launcher ${launcher} had it before.`;
  return { ...nothing, phase: 'none', text: `${text} ${had}`, launcher, since: Math.max(since, last.left) };
}

function missingOf({ resource, limit, used, needed }: LimitFacts): string {
  const missing = Math.max(needed - Math.max(0, limit - used), 0);
  return `${missing} ${missing === 1 ? resource.replace(/s$/u, '') : resource}`;
}
