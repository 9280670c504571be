/** Requests that could not be dealt with, until they are looked at again: what failed would fail again at once. */

import type { Clock, Timer } from '@nodepool/core';

export class DeferredRequests {
  private readonly timers = new Map<string, Timer>();
  private stopped = false;

  constructor(
    private readonly clock: Clock,
    /** Called when a request is to be looked at again. */
    private readonly again: (requestId: string) => void,
  ) {}

  get size(): number {
    return this.timers.size;
  }

  has(requestId: string): boolean {
    return this.timers.has(requestId);
  }

  add(requestId: string, delayMs: number): void {
    if (this.stopped) return;
    this.timers.get(requestId)?.cancel();
    const timer = this.clock.schedule(delayMs, () => {
      this.timers.delete(requestId);
      this.again(requestId);
    });
    this.timers.set(requestId, timer);
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }
}
