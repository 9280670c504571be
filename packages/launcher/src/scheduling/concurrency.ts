/**
 * Limits the requests that a provider works on at a time: `max-concurrency` at most. Throttled launches halve the limit;
 * launches that succeed increase it again by one each. Pools that find no permit left get the next ones in turn, those
 * with requests of the best priority first.
 */

import type { Clock } from '@nodepool/core';

/** Shortest time between two decreases, in milliseconds: launches that ran at the same time are throttled together. */
const DECREASE_INTERVAL_MS = 10_000;
/** Time without throttling after which the configured limit holds again, in milliseconds. */
const FORGET_MS = 600_000;

export class Concurrency {
  private inUse = 0;
  private adapted: number;
  private decreasedAt = -Infinity;
  /** Listeners of the pools that wait for a permit, in their order, with the priority of the request. */
  private readonly line = new Map<() => void, string>();

  /** `configured` may be `Infinity`. */
  constructor(
    private readonly configured: number,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.adapted = configured;
  }

  /** Requests that the provider works on at a time at present. */
  get limit(): number {
    return this.clock.monotonic() - this.decreasedAt >= FORGET_MS ? this.configured : this.adapted;
  }

  /** To be called when the cloud throttles a launch. */
  throttled(): void {
    const now = this.clock.monotonic();
    if (now - this.decreasedAt < DECREASE_INTERVAL_MS) return;
    this.adapted = Math.max(Math.floor(Math.min(this.limit, this.inUse) / 2), 1);
    this.decreasedAt = now;
  }

  /** To be called when a launch has succeeded. */
  succeeded(): void {
    if (this.limit >= this.configured) return;
    this.adapted = Math.min(this.adapted + 1, this.configured);
    this.callNext();
  }

  /** Returns true if the listener's request can acquire a permit, given those that come before it. */
  isAvailable(listener: () => void, priority: string): boolean {
    let permits = this.limit - this.inUse;
    let passed = false;
    for (const [waiting, theirs] of this.line) {
      passed ||= waiting === listener;
      if (waiting !== listener && (theirs < priority || (theirs === priority && !passed))) permits -= 1;
    }
    return permits > 0;
  }

  /** Adds the listener to the line, unless it is in it; it is called when there is a permit. */
  wait(listener: () => void, priority: string): void {
    const before = this.line.get(listener);
    if (before === undefined || priority < before) this.line.set(listener, priority);
  }

  /** Removes the listener from the line; the permit is for the next one. */
  leave(listener: () => void): void {
    if (this.line.delete(listener)) this.callNext();
  }

  /** Acquires a permit; a pool that needs another one goes to the end of the line. */
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
    if (permits <= 0) return;
    const inOrder = [...this.line].sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (const [listener] of inOrder.slice(0, permits)) listener();
  }
}
