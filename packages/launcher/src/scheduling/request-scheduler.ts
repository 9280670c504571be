/**
 * Offers waiting requests to the pools of a launcher, in the order of service: all pools share the limits of providers and
 * tenants, so that no pool may decide about a request before the better ones were offered to every pool. What was decided
 * holds until something that it depends on changes; then that class of requests is offered to that pool again.
 *
 * Work ends with the turn of the event loop when the budget is used up, and goes on in the next one, where it stopped.
 */

import type { Clock, NodeRequest, Timer } from '@nodepool/core';
import type { RequestEntry, Store } from '@nodepool/store';
import type { CandidatePools } from '../requests/candidate-pools.js';
import { DeferredRequests } from '../requests/deferred-requests.js';
import { compareClasses, OpenRequests, type RequestClass } from './open-requests.js';

/** Time for decisions in one turn of the event loop, milliseconds, of all pools of a launcher together. */
const TURN_BUDGET_MS = 10;

/** Requests whose records are being written at a time: enough to keep ZooKeeper busy, few enough to keep the order of service. */
const MAX_WRITING = 32;

/** Sets of labels whose pools are remembered. */
const MAX_LABEL_SETS = 10_000;

/** A pool, as far as it is offered requests. */
export interface ScheduledPool {
  hasLabels(labels: readonly string[]): boolean;
  hasDeclined(request: NodeRequest): boolean;
  /** Returns true if the pool has taken the request, to serve it or to change its state. */
  offer(of: RequestClass, entry: RequestEntry): boolean;
  /** The class has another first request, or none. */
  firstChanged(of: RequestClass): void;
  /** Everything that was to be offered has been. */
  settled(): void;
  /** The requestor has deleted a request that the pool has taken. */
  withdrawn(requestId: string): void;
}

/** The pools to which a class is to be offered. */
interface Offer {
  everywhere: boolean;
  readonly pools: Set<ScheduledPool>;
}

export class RequestScheduler {
  private readonly open: OpenRequests;
  private readonly deferred: DeferredRequests;
  private readonly pools = new Set<ScheduledPool>();
  /** In the hands of a pool, and not yet written. */
  private readonly writing = new Set<string>();
  /** By request: the pool that has taken it. */
  private readonly holders = new Map<string, ScheduledPool>();
  private readonly offers = new Map<RequestClass, Offer>();
  /** Classes to be offered, in the order of service. */
  private agenda: RequestClass[] = [];
  /** Every class is to be offered to every pool. */
  private all = false;
  /** By labels: pools that have them. */
  private readonly byLabels = new Map<
    string,
    { readonly labels: readonly string[]; readonly pools: Set<ScheduledPool> }
  >();
  private readonly touched = new Set<ScheduledPool>();
  private turn = 0;
  private woken = false;
  private nextTurn: Timer | undefined;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly candidates: Pick<CandidatePools, 'complete' | 'onChange'>,
  ) {
    this.deferred = new DeferredRequests(clock, (id) => this.open.show(id));
    this.open = new OpenRequests(store, (of, sooner) => this.firstChanged(of, sooner));
    this.unsubscribe = [
      candidates.onChange(() => this.offerAll()),
      store.onComplete(() => this.offerAll()),
      store.requests.onChange(({ id, after }) => {
        if (after === undefined) this.holders.get(id)?.withdrawn(id);
      }),
    ];
  }

  /** Requests that are left alone for a while after a failure. */
  get deferredCount(): number {
    return this.deferred.size;
  }

  add(pool: ScheduledPool): void {
    this.pools.add(pool);
    for (const { labels, pools } of this.byLabels.values()) if (pool.hasLabels(labels)) pools.add(pool);
    this.offerAllTo(pool);
  }

  remove(pool: ScheduledPool): void {
    this.pools.delete(pool);
    this.touched.delete(pool);
    for (const { pools } of this.byLabels.values()) pools.delete(pool);
    for (const { pools } of this.offers.values()) pools.delete(pool);
    // It may have been the last one that could serve a request.
    this.offerAll();
  }

  /** Offers these classes to the pool again: there may be more room. */
  offer(classes: Iterable<RequestClass>, pool: ScheduledPool): void {
    if (!this.pools.has(pool)) return;
    for (const of of classes) this.put(of).pools.add(pool);
    this.touched.add(pool);
    this.wake();
  }

  /** Offers all requests to the pool again: it may decide otherwise now. */
  offerAllTo(pool: ScheduledPool): void {
    if (!this.pools.has(pool)) return;
    const concerned = [...this.open.classes].filter((of) => pool.hasLabels(of.labels) || this.isDeclinedByAll(of));
    this.offer(concerned, pool);
  }

  /** Offers all requests to all pools again, after a change of the registry. */
  offerAll(): void {
    this.all = true;
    this.wake();
  }

  /** A pool takes the request into its hands. */
  taken(requestId: string, pool: ScheduledPool): void {
    this.writing.add(requestId);
    this.holders.set(requestId, pool);
    this.open.hide(requestId);
  }

  /** The request's records have been written. */
  written(requestId: string): void {
    if (this.writing.delete(requestId)) this.wake();
  }

  /** The pool holds nothing of the request any more, which is to be left alone for `delayMs`. */
  finished(requestId: string, delayMs: number): void {
    this.written(requestId);
    this.holders.delete(requestId);
    if (delayMs > 0) this.deferred.add(requestId, delayMs);
    else this.open.show(requestId);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.open.stop();
    this.deferred.stop();
    this.nextTurn?.cancel();
    this.pools.clear();
  }

  private wake(): void {
    if (this.woken || this.nextTurn !== undefined) return;
    this.woken = true;
    // After everything that came with the same packet, so that the order of service is that of all of it.
    queueMicrotask(() => {
      this.woken = false;
      if (this.nextTurn === undefined) this.work();
    });
  }

  private work(): void {
    const { store, clock } = this;
    if (this.pools.size === 0 || !store.complete || !this.candidates.complete) return;
    const end = clock.monotonic() + TURN_BUDGET_MS;
    if (this.all) this.putAll();
    while (this.writing.size < MAX_WRITING) {
      const of = this.agenda.shift();
      if (of === undefined) {
        this.settle();
        return;
      }
      this.offerFirst(of);
      if (clock.monotonic() >= end) {
        this.nextTurn = clock.schedule(0, () => {
          this.nextTurn = undefined;
          this.work();
        });
        return;
      }
    }
  }

  private offerFirst(of: RequestClass): void {
    const entry = of.first;
    const offer = this.offers.get(of);
    this.offers.delete(of);
    if (entry === undefined || offer === undefined) return;
    const pools = offer.everywhere ? this.poolsFor(of) : [...offer.pools];
    // Pools that could serve the same take turns.
    this.turn += 1;
    for (let index = 0; index < pools.length; index += 1) {
      const pool = pools[(this.turn + index) % pools.length];
      if (pool === undefined || !this.pools.has(pool)) continue;
      this.touched.add(pool);
      if (!pool.offer(of, entry)) continue;
      const rest = Array.from(
        { length: pools.length - index },
        (_, at) => pools[(this.turn + index + at) % pools.length],
      );
      if (of.first !== undefined) for (const other of rest) if (other !== undefined) this.put(of).pools.add(other);
      return;
    }
  }

  private settle(): void {
    for (const pool of this.touched) pool.settled();
    this.touched.clear();
  }

  private firstChanged(of: RequestClass, sooner: boolean): void {
    const index = this.offers.has(of) ? this.agenda.indexOf(of) : -1;
    if (index >= 0) this.agenda.splice(index, 1);
    for (const pool of this.pools) pool.firstChanged(of);
    if (of.first === undefined) {
      this.offers.delete(of);
      return;
    }
    if (index >= 0) this.insert(of);
    if (!sooner) return;
    this.put(of).everywhere = true;
    this.wake();
  }

  private put(of: RequestClass): Offer {
    let offer = this.offers.get(of);
    if (offer === undefined) {
      offer = { everywhere: false, pools: new Set() };
      this.offers.set(of, offer);
      this.insert(of);
    }
    return offer;
  }

  private putAll(): void {
    this.all = false;
    for (const of of this.open.classes) {
      const offer = this.offers.get(of) ?? { everywhere: true, pools: new Set() };
      offer.everywhere = true;
      this.offers.set(of, offer);
    }
    this.agenda = [...this.offers.keys()].sort(compareClasses);
  }

  private insert(of: RequestClass): void {
    let low = 0;
    let high = this.agenda.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.agenda[middle];
      if (other !== undefined && compareClasses(other, of) < 0) low = middle + 1;
      else high = middle;
    }
    this.agenda.splice(low, 0, of);
  }

  /** Pools that have the labels; if all of these have declined, or none has them, all pools, which may have to decline. */
  private poolsFor(of: RequestClass): readonly ScheduledPool[] {
    return [...(this.isDeclinedByAll(of) ? this.pools : this.poolsWith(of.labels))];
  }

  private isDeclinedByAll(of: RequestClass): boolean {
    for (const pool of this.poolsWith(of.labels)) if (!pool.hasDeclined(of.request)) return false;
    return true;
  }

  private poolsWith(labels: readonly string[]): ReadonlySet<ScheduledPool> {
    const key = JSON.stringify(labels);
    let known = this.byLabels.get(key);
    if (known === undefined) {
      // Requestors invent labels.
      if (this.byLabels.size >= MAX_LABEL_SETS) this.byLabels.clear();
      known = { labels, pools: new Set([...this.pools].filter((pool) => pool.hasLabels(labels))) };
      this.byLabels.set(key, known);
    }
    return known.pools;
  }
}
