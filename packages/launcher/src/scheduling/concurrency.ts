/**
 * Limits the requests that a provider works on at the same time to `max-concurrency` or less. Throttled launches halve
 * the limit; each successful launch increases it by one. Pools that wait for a permit get the next ones in turn, those
 * with requests of the highest priority first.
 */

import type { Clock } from '@nodepool/core';

/** Shortest time between two decreases, milliseconds, because concurrent launches are throttled together. */
const DECREASE_INTERVAL_MS = 10_000;
/** Time without throttling after which the configured limit applies again, milliseconds. */
const FORGET_MS = 600_000;

export class Concurrency {
  private inUse = 0;
  private adapted: number;
  private decreasedAt = -Infinity;
  /** Listeners of the waiting pools in order, each with the priority of its request. */
  private readonly line = new Map<() => void, string>();

  /** `configured` may be `Infinity`. */
  constructor(
    private readonly configured: number,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.adapted = configured;
  }

  get limit(): number {
    return this.clock.monotonic() - this.decreasedAt >= FORGET_MS ? this.configured : this.adapted;
  }

  /** Decreases the limit because the cloud has throttled a launch. */
  throttled(): void {
    const now = this.clock.monotonic();
    if (now - this.decreasedAt < DECREASE_INTERVAL_MS) return;
    this.adapted = Math.max(Math.floor(Math.min(this.limit, this.inUse) / 2), 1);
    this.decreasedAt = now;
  }

  /** Increases the limit because a launch has succeeded. */
  succeeded(): void {
    if (this.limit >= this.configured) return;
    this.adapted = Math.min(this.adapted + 1, this.configured);
    this.callNext();
  }

  /** Returns true if the listener's request can acquire a permit, given the line ahead of it. */
  isAvailable(listener: () => void, priority: string): boolean {
    let permits = this.limit - this.inUse;
    let passed = false;
    for (const [waiting, theirs] of this.line) {
      passed ||= waiting === listener;
      if (waiting !== listener && (theirs < priority || (theirs === priority && !passed))) permits -= 1;
    }
    return permits > 0;
  }

  /** Adds the listener to the line unless it is already there. It is called when a permit is available. */
  wait(listener: () => void, priority: string): void {
    const before = this.line.get(listener);
    if (before === undefined || priority < before) this.line.set(listener, priority);
  }

  /** Removes the listener from the line, so that the next one gets the permit. */
  leave(listener: () => void): void {
    if (this.line.delete(listener)) this.callNext();
  }

  /** Acquires a permit. A pool that needs another one joins the end of the line. */
  acquire(listener: () => void): { release(): void } {
    this.inUse += 1;
    this.line.delete(listener);
    return {
      release: () => {
        this.inUse -= 1;
        this.callNext();
      },
    };
  }

  private callNext(): void {
    const permits = this.limit - this.inUse;
    if (permits <= 0 || this.line.size === 0) return;
    const inOrder = [...this.line].sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (const [listener] of inOrder.slice(0, permits)) listener();
  }
}
