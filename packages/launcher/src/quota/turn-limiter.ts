import type { Clock, Timer } from '@nodepool/core';

/** Spreads many small operations over turns of the event loop: a limited number of them start in each turn. */
export class TurnLimiter {
  private startedInTurn = 0;
  private waiting: (() => void)[] = [];
  private nextTurn: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly perTurn: number,
  ) {}

  /** Resolves when the operation may start, in the order of the calls. */
  async acquire(): Promise<void> {
    this.nextTurn ??= this.clock.schedule(0, () => this.turn());
    if (this.startedInTurn < this.perTurn) this.startedInTurn += 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  private turn(): void {
    const released = this.waiting.slice(0, this.perTurn);
    this.waiting = this.waiting.slice(this.perTurn);
    this.startedInTurn = released.length;
    this.nextTurn = released.length === 0 ? undefined : this.clock.schedule(0, () => this.turn());
    for (const resolve of released) resolve();
  }
}
