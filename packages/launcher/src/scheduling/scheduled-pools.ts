import type { NodeRequest } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { RequestClass } from './open-requests.js';

/** Limit of the label sets whose pools are cached. */
const MAX_LABEL_SETS = 10_000;

/** A pool, as used by the scheduler. */
export interface ScheduledPool {
  /** Name in `declined_by`. */
  readonly id: string;
  /** True while the provider starts, and it is not known yet if the pool can serve requests. */
  readonly isStarting: boolean;
  hasLabels(labels: readonly string[]): boolean;
  hasDeclined(request: NodeRequest): boolean;
  /**
   * Returns true if the pool accepts the request, to serve it or to change its state, or if it has left the request to
   * another launcher with `RequestScheduler.standBy`.
   */
  offer(requestClass: RequestClass, entry: RequestEntry): boolean;
  /** Declines a request whose wait limit has expired. Returns false if the request continues in another pool. */
  expire(requestClass: RequestClass, entry: RequestEntry): boolean;
  /** Called when the class gets another first request, or none. */
  firstChanged(requestClass: RequestClass): void;
  /** Called when all pending offers have been made. */
  settled(): void;
  /** Called when the requestor has deleted a request that the pool has accepted. */
  cancelled(requestId: string): void;
}

export class ScheduledPools {
  private readonly pools = new Set<ScheduledPool>();
  /** Cached pools that have all labels of a set, by set. */
  private readonly byLabels = new Map<
    string,
    { readonly labels: readonly string[]; readonly pools: Set<ScheduledPool> }
  >();

  get size(): number {
    return this.pools.size;
  }

  [Symbol.iterator](): Iterator<ScheduledPool> {
    return this.pools.values();
  }

  has(pool: ScheduledPool): boolean {
    return this.pools.has(pool);
  }

  add(pool: ScheduledPool): void {
    this.pools.add(pool);
    for (const { labels, pools } of this.byLabels.values()) if (pool.hasLabels(labels)) pools.add(pool);
  }

  delete(pool: ScheduledPool): void {
    this.pools.delete(pool);
    for (const { pools } of this.byLabels.values()) pools.delete(pool);
  }

  clear(): void {
    this.pools.clear();
  }

  /** Returns the pools that have the labels. If all of them have declined, returns all pools. */
  for(requestClass: RequestClass): readonly ScheduledPool[] {
    return [...(this.haveAllDeclined(requestClass) ? this.pools : this.withLabels(requestClass.labels))];
  }

  haveAllDeclined(requestClass: RequestClass): boolean {
    for (const pool of this.withLabels(requestClass.labels)) if (!pool.hasDeclined(requestClass.request)) return false;
    return true;
  }

  /** Returns the pools that have the labels. */
  withLabels(labels: readonly string[]): ReadonlySet<ScheduledPool> {
    const key = keyOf(labels);
    let known = this.byLabels.get(key);
    if (known === undefined) {
      // Requestors may name any number of labels.
      if (this.byLabels.size >= MAX_LABEL_SETS) this.byLabels.clear();
      known = { labels, pools: new Set([...this.pools].filter((pool) => pool.hasLabels(labels))) };
      this.byLabels.set(key, known);
    }
    return known.pools;
  }
}

/** Returns a key of a list of labels, which may contain any character. Most requests have one label. */
function keyOf(labels: readonly string[]): string {
  const [first = ''] = labels;
  return labels.length === 1 ? `=${first}` : JSON.stringify(labels);
}
