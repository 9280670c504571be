/**
 * Requests that this launcher could serve, and leaves to a launcher before it in the order. Their capacity is held as
 * if this launcher had accepted them, so that no later request takes it.
 */

import { TimerQueue, type Clock, type NodeRequest, type Timer } from '@nodepool/core';
import type { Change, RequestEntry, Store } from '@nodepool/store';
import type { CapacityHold } from '../quota/quota-ledger.js';
import type { Precedence } from '../precedence/precedence.js';
import type { ScheduledPool } from './scheduled-pools.js';

/**
 * Time for which capacity is held after another launcher has taken the request (ms): the records that it creates arrive
 * in the cache meanwhile.
 */
const RECORDS_MS = 100;

/** A request that waits for another launcher. */
export interface StandBy {
  readonly entry: RequestEntry;
  readonly pool: ScheduledPool;
  /** Capacity and ready nodes that another launcher would use; undefined if it would only write the request. */
  readonly hold: CapacityHold | undefined;
  readonly nodes: readonly string[];
  /** Returns the time (ms) until this launcher may act; 0 if it may act now. */
  waitMs(request: NodeRequest): number;
}

interface Pending extends StandBy {
  timer: Timer | undefined;
}

export class StandBys {
  private readonly pending = new Map<string, Pending>();
  private readonly timers: TimerQueue;
  /** Ready nodes that other launchers would use. */
  private readonly claimed = new Set<string>();
  private readonly unsubscribe: () => void;

  constructor(
    store: Pick<Store, 'requests'>,
    private readonly clock: Clock,
    private readonly precedence: Pick<Precedence, 'taken' | 'forget'>,
    /** Called when the request must be offered again, unless it is no longer open. */
    private readonly onEnd: (requestId: string) => void,
  ) {
    this.timers = new TimerQueue(clock, { background: true });
    this.unsubscribe = store.requests.onChange(this.changed);
  }

  has(requestId: string): boolean {
    return this.pending.has(requestId);
  }

  /** Returns true if another launcher would use the ready node for a request. */
  claims(nodeId: string): boolean {
    return this.claimed.has(nodeId);
  }

  begin(standBy: StandBy, waitMs: number): void {
    const { entry, nodes } = standBy;
    const pending: Pending = { ...standBy, timer: undefined };
    for (const id of nodes) this.claimed.add(id);
    this.pending.set(entry.id, pending);
    this.arm(pending, waitMs);
  }

  /** Looks at all waits again, because the order of the launchers may have changed. */
  registryChanged(): void {
    for (const pending of [...this.pending.values()]) this.check(pending);
  }

  /** Ends the waits of a pool that is removed. */
  forget(pool: ScheduledPool): void {
    for (const pending of [...this.pending.values()]) {
      if (pending.pool !== pool) continue;
      this.release(pending);
      this.onEnd(pending.entry.id);
    }
  }

  stop(): void {
    this.unsubscribe();
    for (const pending of [...this.pending.values()]) this.release(pending);
  }

  private arm(pending: Pending, waitMs: number): void {
    pending.timer?.cancel();
    pending.timer = this.timers.schedule(this.clock.monotonic() + waitMs, () => this.check(pending));
  }

  private check(pending: Pending): void {
    const waitMs = pending.waitMs(pending.entry.request);
    if (waitMs > 0) {
      this.arm(pending, waitMs);
      return;
    }
    this.release(pending);
    this.onEnd(pending.entry.id);
  }

  private readonly changed = ({ id, after }: Change<RequestEntry>): void => {
    const pending = this.pending.get(id);
    if (after === undefined) this.precedence.forget(id);
    else if (after.locked) this.precedence.taken(id);
    if (pending === undefined) return;
    if (after?.locked === true && pending.hold !== undefined) {
      this.timers.schedule(this.clock.monotonic() + RECORDS_MS, () => pending.hold?.release());
      this.release({ ...pending, hold: undefined });
    } else this.release(pending);
    this.onEnd(id);
  };

  private release({ entry, hold, nodes, timer }: Pending): void {
    this.pending.delete(entry.id);
    timer?.cancel();
    for (const id of nodes) this.claimed.delete(id);
    hold?.release();
  }
}
