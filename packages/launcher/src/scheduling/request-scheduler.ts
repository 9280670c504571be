/**
 * Offers waiting requests to the pools of a launcher, in the order of service. All pools share the limits of providers
 * and tenants, so each request is offered to every pool before the next request is. A decision is valid until a fact
 * changes that it depends on; then the class of requests is offered to the pool again.
 */

import { WorkQueue, type Clock, type Reconciled, type Timer } from '@nodepool/core';
import { settleEvents, type RequestEntry, type Store } from '@nodepool/store';
import type { WaitLimits } from '../capacity/wait-limits.js';
import type { LauncherContext } from '../context.js';
import type { CandidatePools } from '../pool/candidate-pools.js';
import type { QueuePosition } from '@nodepool/status';
import { FairLine } from './fair-line.js';
import { ServiceOrder } from '../fairness/service-order.js';
import { PriorityLine } from './class-line.js';
import { ClassQueue, type PendingPools } from './class-queue.js';
import { OpenRequests, type RequestClass } from './open-requests.js';
import { Precedence } from '../precedence/precedence.js';
import { ScheduledPools, type ScheduledPool } from './scheduled-pools.js';
import { StandBys, type StandBy } from './stand-bys.js';

/** Time limit for decisions in one turn of the event loop, milliseconds; the next turn continues. */
const TURN_BUDGET_MS = 5;

/** Limit of requests being recorded: enough to use ZooKeeper fully, few enough to preserve the order of service. */
const MAX_RECORDING = 32;

/** Time for which a pool leaves a request to other pools after a failed launch, milliseconds. */
const DEFERRAL_MS = 5000;

/** Delay before an expired wait is handled if pools have not decided about the request yet, milliseconds. */
const UNDECIDED_MS = 1000;

/** Longest delay of a timer, milliseconds. */
const MAX_TIMER_MS = 86_400_000;

export class RequestScheduler {
  private readonly open: OpenRequests;
  /** Requests whose handling failed, each until its retry; an immediate retry would fail again. */
  private readonly retries: WorkQueue<string>;
  /** Open requests, each due at its wait limit. */
  private readonly expiries: WorkQueue<string>;
  /** Requests whose wait has ended while no pool could decline them, e.g. because their provider was restarted. */
  private readonly overdue = new Set<string>();
  private readonly pools = new ScheduledPools();
  /** Requests that a pool has accepted, until their records are written. */
  private readonly recording = new Set<string>();
  /** The pool that has accepted a request, by request. */
  private readonly holders = new Map<string, ScheduledPool>();
  private readonly undecided = new ClassQueue<ScheduledPool>();
  private readonly standBys: StandBys;
  /** True if every class must be offered to every pool. */
  private all = false;
  /** Pools to which every class must be offered. */
  private readonly reevaluating = new Set<ScheduledPool>();
  private readonly touched = new Set<ScheduledPool>();
  private turn = 0;
  private woken = false;
  private nextTurn: Timer | undefined;
  private readonly timers = new Set<Timer>();
  private readonly unsubscribe: (() => void)[];

  private readonly store: Store;
  private readonly clock: Clock;

  constructor(
    context: Pick<LauncherContext, 'store' | 'clock' | 'random' | 'tasks' | 'log'>,
    private readonly candidates: Pick<CandidatePools, 'complete' | 'onChange'>,
    private readonly waitLimits: Pick<WaitLimits, 'limitOf'>,
    private readonly order: ServiceOrder = new ServiceOrder(),
    precedence: Pick<Precedence, 'taken' | 'forget' | 'requestLocked'> = new Precedence(context.store, context.clock),
  ) {
    const { store, clock } = context;
    this.store = store;
    this.clock = clock;
    this.retries = new WorkQueue({
      ...context,
      name: (id) => `retry request ${id}`,
      reconcile: (id) => {
        this.open.show(id);
        return Promise.resolve('done');
      },
    });
    this.expiries = new WorkQueue({
      ...context,
      name: (id) => `end the wait of request ${id}`,
      reconcile: (id) => Promise.resolve(this.expire(id)),
    });
    this.open = new OpenRequests(
      store,
      (requestClass, sooner) => this.firstChanged(requestClass, sooner),
      (entry) => this.expireLater(entry),
      order,
    );
    this.standBys = new StandBys(store, clock, precedence, (id) => this.open.show(id));
    this.unsubscribe = [
      candidates.onChange((isDecisive) => {
        this.standBys.registryChanged();
        if (isDecisive) this.offerAll();
      }),
      store.onComplete(() => this.offerAll()),
      store.requests.onChange(({ id, before, after }) => {
        if (after !== undefined) {
          if (after.locked && before?.locked !== true && !this.holders.has(id)) precedence.requestLocked(after.request);
          return;
        }
        this.holders.get(id)?.cancelled(id);
        this.expiries.remove(id);
        this.overdue.delete(id);
      }),
    ];
  }

  /** Number of requests that wait for a retry after a failure. */
  get retryCount(): number {
    return this.retries.size;
  }

  /** Returns the place of a waiting request among the requests with the same needs. */
  queuePosition(requestId: string): QueuePosition | undefined {
    return this.open.queuePosition(requestId);
  }

  add(pool: ScheduledPool): void {
    this.pools.add(pool);
    this.offerAllTo(pool);
    for (const id of [...this.overdue]) this.expiries.add(id);
    this.overdue.clear();
  }

  remove(pool: ScheduledPool): void {
    this.pools.delete(pool);
    this.reevaluating.delete(pool);
    this.touched.delete(pool);
    this.undecided.forget(pool);
    this.standBys.forget(pool);
    // The removed pool may have been the last one that could serve a request.
    this.offerAll();
  }

  /** Offers these classes to the pool again, because it may have more capacity. */
  offer(classes: Iterable<RequestClass>, pool: ScheduledPool): void {
    if (!this.pools.has(pool)) return;
    for (const requestClass of classes) this.undecided.put(requestClass).pools.add(pool);
    this.touched.add(pool);
    this.wake();
  }

  /** Offers all requests to the pool again, because its decisions may change. */
  offerAllTo(pool: ScheduledPool): void {
    if (!this.pools.has(pool)) return;
    this.reevaluating.add(pool);
    this.wake();
  }

  /** Offers all requests to all pools again, after a change of the registry. */
  offerAll(): void {
    this.all = true;
    this.wake();
  }

  /** Leaves the request to another launcher for a while, and offers it again if that launcher does not take it. */
  standBy(standBy: StandBy, waitMs: number): void {
    this.standBys.begin(standBy, waitMs);
  }

  /** Returns true if another launcher would use the ready node for a request. */
  isClaimed(nodeId: string): boolean {
    return this.standBys.claims(nodeId);
  }

  /** Records that the records of an accepted request are written. */
  recorded(requestId: string): void {
    if (this.recording.delete(requestId)) this.wake();
  }

  /** Records that the pool has released the request. It is not offered again before `retryAfterMs`. */
  ended(requestId: string, retryAfterMs: number): void {
    this.recorded(requestId);
    this.holders.delete(requestId);
    if (retryAfterMs > 0) this.retries.add(requestId, retryAfterMs);
    else this.open.show(requestId);
  }

  /** Records that a pool has given up the request without declining it, so that other pools precede it. */
  givenUp(requestId: string, pool: string): void {
    this.open.giveUp(requestId, pool);
    const timer = this.clock.schedule(DEFERRAL_MS, () => {
      this.timers.delete(timer);
      this.open.readmit(requestId, pool);
    });
    this.timers.add(timer);
  }

  /** Sorts all waiting requests again after a change of the rule that orders them. */
  orderChanged(): void {
    this.undecided.use(this.order.fair === undefined ? new PriorityLine() : new FairLine(this.order));
    this.open.reorder();
    this.offerAll();
  }

  /** Computes all wait limits again after a change of the configuration. */
  waitLimitsChanged(): void {
    for (const { entries } of this.open.classes) for (const entry of entries) this.expireLater(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.open.stop();
    this.standBys.stop();
    this.retries.close();
    this.expiries.close();
    for (const timer of this.timers) timer.cancel();
    this.nextTurn?.cancel();
    this.pools.clear();
  }

  /** Makes the pending offers once all current events are applied, so that all of them determine the order. */
  private wake(): void {
    if (this.woken || this.nextTurn !== undefined) return;
    this.woken = true;
    void settleEvents().then(() => {
      this.woken = false;
      if (this.nextTurn === undefined) this.work();
    });
  }

  private work(): void {
    const { store, clock } = this;
    if (this.pools.size === 0 || !store.complete || !this.candidates.complete) return;
    const end = clock.monotonic() + TURN_BUDGET_MS;
    if (this.all) {
      this.all = false;
      this.reevaluating.clear();
      this.undecided.putAll(this.open.classes);
    }
    for (const pool of this.reevaluating) {
      this.reevaluating.delete(pool);
      this.reevaluate(pool);
      if (clock.monotonic() >= end) {
        this.continueLater();
        return;
      }
    }
    while (this.recording.size < MAX_RECORDING) {
      const next = this.undecided.take();
      if (next === undefined) {
        this.settle();
        return;
      }
      this.offerFirst(next.requestClass, next.pending);
      if (clock.monotonic() >= end) {
        this.continueLater();
        return;
      }
    }
  }

  private continueLater(): void {
    this.nextTurn = this.clock.schedule(0, () => {
      this.nextTurn = undefined;
      this.work();
    });
  }

  private reevaluate(pool: ScheduledPool): void {
    for (const requestClass of this.open.classes) {
      const isConcerned = pool.hasLabels(requestClass.labels) || this.pools.haveAllDeclined(requestClass);
      if (isConcerned) this.undecided.put(requestClass).pools.add(pool);
    }
    this.touched.add(pool);
  }

  private offerFirst(requestClass: RequestClass, pending: PendingPools<ScheduledPool>): void {
    const entry = requestClass.first;
    if (entry === undefined) return;
    const pools = pending.everywhere ? this.pools.for(requestClass) : [...pending.pools];
    // Pools that can serve the same requests take turns.
    this.turn += 1;
    for (let index = 0; index < pools.length; index += 1) {
      const pool = pools[(this.turn + index) % pools.length];
      if (pool === undefined || !this.pools.has(pool)) continue;
      this.touched.add(pool);
      if (!pool.offer(requestClass, entry)) continue;
      this.taken(entry.id, pool);
      if (!this.standBys.has(entry.id)) requestClass.servedAt = this.clock.now();
      if (requestClass.first === undefined) return;
      for (let rest = index; rest < pools.length; rest += 1) {
        const other = pools[(this.turn + rest) % pools.length];
        if (other !== undefined) this.undecided.put(requestClass).pools.add(other);
      }
      return;
    }
  }

  private expireLater({ id, request }: RequestEntry): void {
    const { at } = this.waitLimits.limitOf(request);
    this.expiries.remove(id);
    if (at < Infinity) this.expiries.add(id, Math.min(at - this.clock.now(), MAX_TIMER_MS));
  }

  /** Lets the next pool decline the request if its wait limit has expired. */
  private expire(id: string): Reconciled {
    const open = this.open.find(id);
    if (open === undefined) return 'done';
    const { entry, requestClass } = open;
    const leftMs = this.waitLimits.limitOf(entry.request).at - this.clock.now();
    if (leftMs > 0) return leftMs < Infinity ? { requeueAfterMs: Math.min(leftMs, MAX_TIMER_MS) } : 'done';
    // A request that lost its launcher does not wait: a pool resumes its launches, or `LostRequests` requeues it.
    if (entry.request.state === 'pending') return 'done';
    const pools = this.pools.for(requestClass).filter((pool) => !pool.hasDeclined(entry.request));
    // The request may still be served now, and an expired wait must fail only requests that cannot be.
    const isUndecided =
      this.all ||
      this.reevaluating.size > 0 ||
      this.undecided.has(requestClass) ||
      !this.store.complete ||
      !this.candidates.complete;
    if (isUndecided || pools.some(({ isStarting }) => isStarting)) return { requeueAfterMs: UNDECIDED_MS };
    for (const pool of pools) {
      if (!pool.expire(requestClass, entry)) continue;
      this.taken(id, pool);
      return 'done';
    }
    this.overdue.add(id);
    return 'done';
  }

  private taken(requestId: string, pool: ScheduledPool): void {
    if (!this.standBys.has(requestId)) {
      this.recording.add(requestId);
      this.holders.set(requestId, pool);
    }
    this.open.hide(requestId);
  }

  private settle(): void {
    for (const pool of this.touched) pool.settled();
    this.touched.clear();
  }

  private firstChanged(requestClass: RequestClass, sooner: boolean): void {
    const wasQueued = this.undecided.leave(requestClass);
    // A class waits only in pools that have its labels.
    for (const pool of this.pools.withLabels(requestClass.labels)) pool.firstChanged(requestClass);
    if (requestClass.first === undefined) {
      this.undecided.delete(requestClass);
      return;
    }
    if (wasQueued) this.undecided.enter(requestClass);
    if (!sooner) return;
    this.undecided.put(requestClass).everywhere = true;
    this.wake();
  }
}
