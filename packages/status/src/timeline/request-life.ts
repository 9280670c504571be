/** The life of one request. */

import type { NodeRequest } from '@nodepool/core';
import { Life, NO_ATTEMPTS, type Attempt, type RequestEnd, type RequestFacts } from './life.js';
import type { LaunchStage, Refusal, Wait, WaitKind } from '../facts/timeline-recorder.js';

/** A wait in one pool; `since` is in milliseconds since the epoch. */
export type PoolWait = Wait & { readonly pool: string; readonly since: number };

/** Waits by likely duration: a limit usually becomes free sooner than a cloud gets capacity or an image is built. */
const WAIT_RANK: Readonly<Record<WaitKind, number>> = { limit: 0, order: 1, capacity: 2, image: 3 };

/** Stages of launches in order; the phase of a request is that of its slowest node. */
const STAGES: Readonly<Record<LaunchStage, number>> = { limit: 0, creating: 1, booting: 2, login: 3, launched: 4 };

/** Age (ms) at first sight from which on a request counts as handled by an earlier process. */
const SEEN_LATE_MS = 10_000;
const MAX_POOLS = 50;
const MAX_ATTEMPTS = 30;

/** Replaces the maps of an ended life. */
const NOTHING = new Map<string, never>();

export class RequestLife extends Life {
  /** Launch attempts for the request, oldest first. */
  attempts = NO_ATTEMPTS;
  ended: RequestEnd | undefined;
  /** True if the request had ended when it was seen for the first time; statistics leave it out. */
  endedUnseen = false;
  /** The pool of this launcher that has accepted the request or accepted it last. */
  pool: string | undefined;
  /** The pool of this launcher that holds the request or tries to accept it. */
  worker: string | undefined;
  /** The end that the holder in this launcher has written. */
  settled: Pick<RequestEnd, 'result' | 'nodes'> | undefined;
  /** True if no launcher held the request when it was deleted. */
  wasFree = false;
  /** True if this launcher, and no other, reports the end of the request. */
  isReported = false;
  /** Time (ms) at which the record or its lock changed last. */
  changedAt = 0;
  /** True if `worker` has accepted the request. */
  private held = false;
  /** True if a launcher had accepted the request when its record or lock changed last. */
  private isTaken = false;
  private byPool = new Map<string, PoolWait>();
  /** Reasons of pools of this launcher that do not serve it, by pool. */
  refusals = new Map<string, Refusal>();
  private launches = new Map<string, { readonly stage: LaunchStage; readonly reason: string | undefined }>();

  constructor(
    readonly facts: RequestFacts,
    created: number,
  ) {
    super(created);
  }

  /** Returns the life of a request that is seen for the first time. */
  static of(request: NodeRequest, now: number): RequestLife {
    const { id, node_types: labels, requestor, tenant_name: tenant, relative_priority: priority } = request;
    const created = Math.min(now, (request.created_time ?? request.state_time) * 1000 || now);
    const life = new RequestLife({ id, labels, requestor, tenant, priority }, created);
    if (now - created > SEEN_LATE_MS) life.enter(created, 'elsewhere', undefined, 'before this launcher saw it');
    return life;
  }

  /** Returns the waits in pools of this launcher, most likely to end first. */
  poolWaits(): PoolWait[] {
    return [...this.byPool.values()].sort((a, b) => WAIT_RANK[a.kind] - WAIT_RANK[b.kind] || a.since - b.since);
  }

  /** Returns the reason why a pool does not serve the request; undefined if none is recorded. */
  refusalOf(pool: string): string | undefined {
    return this.refusals.get(pool)?.reason;
  }

  waits(now: number, pool: string, wait: Wait): void {
    this.refusals.delete(pool);
    const before = this.byPool.get(pool);
    const since = before?.kind === wait.kind ? before.since : now;
    if (before === undefined && this.byPool.size >= MAX_POOLS) return;
    this.byPool.set(pool, { ...wait, pool, since });
    this.update(now);
  }

  leaves(now: number, pool: string, refusal: Refusal): void {
    this.byPool.delete(pool);
    // A pool that declines again repeats its reason.
    if (this.refusals.get(pool)?.reason === refusal.reason) return;
    if (this.refusals.size < MAX_POOLS || this.refusals.has(pool)) this.refusals.set(pool, refusal);
    this.update(now);
  }

  accepting(now: number, pool: string): void {
    this.byPool.clear();
    this.refusals.delete(pool);
    this.launches.clear();
    this.worker = pool;
    this.held = false;
    this.update(now);
  }

  taken(pool: string): void {
    if (this.worker !== pool) return;
    this.pool = pool;
    this.held = true;
  }

  released(now: number, pool: string): void {
    if (this.worker !== pool) return;
    const { held } = this;
    this.worker = undefined;
    this.held = false;
    this.launches.clear();
    // After a write with an unknown result, the record still shows the state before it.
    if (this.settled !== undefined) return;
    if (this.isTaken && !held) this.enter(now, 'elsewhere', undefined);
    else this.update(now);
  }

  /** The pool of this launcher that holds the request now. */
  get holder(): string | undefined {
    return this.held ? this.pool : undefined;
  }

  nodeStage(now: number, nodeId: string, stage: LaunchStage, reason: string | undefined): void {
    if (this.worker === undefined) return;
    this.launches.set(nodeId, { stage, reason });
    this.update(now);
  }

  attempted(attempt: Attempt): void {
    if (attempt.error?.code === 'aborted') return;
    this.attempts = this.attempts.concat(attempt).slice(-MAX_ATTEMPTS);
    if (attempt.error !== undefined) this.fail(attempt.error.message);
  }

  /** Applies a change of the record or of its lock. The record of a locked request may follow later. */
  recorded(now: number, { state }: NodeRequest, isLocked: boolean): void {
    this.changedAt = now;
    if ((state !== 'pending' && state !== 'requested') || this.settled !== undefined) return;
    this.isTaken = state === 'pending' || isLocked;
    if (this.isTaken && this.worker === undefined) this.enter(now, 'elsewhere', undefined);
    else this.update(now);
  }

  /** Ends the life with the times of the record, because the request has ended before this process saw it. */
  endedEarlier({ state_time: changed }: NodeRequest, now: number): void {
    this.enter(this.created, 'elsewhere', undefined);
    this.close(Math.min(now, changed * 1000));
  }

  finish(now: number, ended: RequestEnd): void {
    this.close(now);
    this.ended = ended;
    // Saves memory: thousands of ended lives are kept.
    this.byPool = NOTHING;
    this.refusals = NOTHING;
    this.launches = NOTHING;
  }

  private bestWait(): PoolWait | undefined {
    let best: PoolWait | undefined;
    for (const wait of this.byPool.values())
      if (best === undefined || WAIT_RANK[wait.kind] < WAIT_RANK[best.kind]) best = wait;
    return best;
  }

  /** Enters the phase of the wait that will probably end first, or of the node whose launch is slowest. */
  private update(now: number): void {
    if (this.worker === undefined) {
      const best = this.bestWait();
      this.enter(now, best?.kind ?? 'order', best?.pool, best?.reason);
      return;
    }
    let least: { readonly stage: LaunchStage; readonly reason: string | undefined } | undefined;
    for (const launch of this.launches.values()) {
      if (least === undefined || STAGES[launch.stage] < STAGES[least.stage]) least = launch;
    }
    if (least === undefined) this.enter(now, 'accepted', this.worker);
    else this.enter(now, least.stage === 'launched' ? 'handover' : least.stage, this.worker, least.reason);
  }
}
