/**
 * The cloud said that it has no room, whatever its limits say: for a while nothing is launched, unless a node of ours goes
 * before. The while is longer each time in a row, for a cloud that keeps refusing.
 */

import type { Clock, Timer } from '@nodepool/core';

const LASTS_MS = { first: 10_000, longest: 80_000 } as const;

export class Shortage {
  private timer: Timer | undefined;
  private lastsMs: number = LASTS_MS.first;

  constructor(
    private readonly clock: Clock,
    /** Called when it is over by itself. */
    private readonly onOver: () => void,
  ) {}

  get lasts(): boolean {
    return this.timer !== undefined;
  }

  begin(): void {
    this.timer?.cancel();
    this.timer = this.clock.schedule(this.lastsMs, () => {
      this.timer = undefined;
      this.onOver();
    });
    this.lastsMs = Math.min(this.lastsMs * 2, LASTS_MS.longest);
  }

  /** There is reason to believe that there is room. */
  end(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.lastsMs = LASTS_MS.first;
  }
}
