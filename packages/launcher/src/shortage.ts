/** The cloud said that it has no room: for a while nothing is launched, unless a node of ours goes before. */

import type { Clock, Timer } from '@nodepool/core';

const LASTS_MS = 10_000;

export class Shortage {
  private timer: Timer | undefined;

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
    this.timer = this.clock.schedule(LASTS_MS, () => {
      this.end();
      this.onOver();
    });
  }

  end(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
