/**
 * Time in which a pool launches nothing because the cloud has refused a launch for lack of room, whatever its limits
 * say. It ends early when a node of the pool's provider is removed, and doubles each time in a row.
 */

import type { Clock, Timer } from '@nodepool/core';

/** First and longest cooldown, milliseconds. */
const COOLDOWN_MS = { first: 10_000, longest: 80_000 } as const;

export class CapacityCooldown {
  private timer: Timer | undefined;
  private nextMs: number = COOLDOWN_MS.first;

  constructor(
    private readonly clock: Clock,
    /** Called when the time is over. */
    private readonly onOver: () => void,
  ) {}

  get isActive(): boolean {
    return this.timer !== undefined;
  }

  begin(): void {
    this.timer?.cancel();
    this.timer = this.clock.schedule(this.nextMs, () => {
      this.timer = undefined;
      this.onOver();
    });
    this.nextMs = Math.min(this.nextMs * 2, COOLDOWN_MS.longest);
  }

  /** Ends it without `onOver`, because the cloud may have room now. */
  end(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.nextMs = COOLDOWN_MS.first;
  }
}
