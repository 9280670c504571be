/** Requests whose handling failed, each until its retry: an immediate retry would fail again. */

import type { Clock, Timer } from '@nodepool/core';

export class RetryDelays {
  private readonly timers = new Map<string, Timer>();
  private stopped = false;

  constructor(
    private readonly clock: Clock,
    /** Called when the delay of a request is over. */
    private readonly onRetry: (requestId: string) => void,
  ) {}

  get size(): number {
    return this.timers.size;
  }

  add(requestId: string, delayMs: number): void {
    if (this.stopped) return;
    this.timers.get(requestId)?.cancel();
    const timer = this.clock.schedule(delayMs, () => {
      this.timers.delete(requestId);
      this.onRetry(requestId);
    });
    this.timers.set(requestId, timer);
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }
}
