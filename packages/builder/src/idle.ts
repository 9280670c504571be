/** Counts pieces of work, and tells when there are none. */

export class Idle {
  private waiters: (() => void)[] = [];

  constructor(private readonly count: () => number) {}

  /** To be called whenever a piece of work has ended. */
  ended(): void {
    if (this.count() > 0) return;
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Resolves once there is no work. */
  async wait(): Promise<void> {
    if (this.count() > 0) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }
}
