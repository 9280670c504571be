/**
 * The largest target of the recent past: ready nodes beyond it are surplus. A target that falls for a moment, or that
 * launchers see at different moments, therefore deletes no node.
 */

interface Step {
  readonly since: number;
  readonly count: number;
}

export class HeldTarget {
  /** Decreasing targets, each with the time (ms) at which the one before it ended. */
  private readonly steps: Step[] = [];

  /** `windowMs`: time for which a larger target is held; `start`: time of the first target. */
  constructor(
    readonly windowMs: number,
    private readonly start: number,
  ) {}

  /** Applies a target from `now` on. */
  set(count: number, now: number): void {
    this.forget(now);
    const { steps } = this;
    let since = now;
    if (steps.at(-1)?.count === count) return;
    // A smaller target never counts again. The larger one before it ended when the smaller one began.
    while ((steps.at(-1)?.count ?? Infinity) <= count) since = steps.pop()?.since ?? since;
    steps.push({ since, count });
  }

  /** Returns the largest target of the window; Infinity until the window has passed once. */
  at(now: number): number {
    this.forget(now);
    return now < this.start + this.windowMs ? Infinity : (this.steps[0]?.count ?? 0);
  }

  /** Returns the time at which the value falls next, unless a larger target is set; Infinity if it does not. */
  nextFall(now: number): number {
    this.forget(now);
    const next = this.steps[1];
    const first = now < this.start + this.windowMs ? this.start + this.windowMs : Infinity;
    return Math.min(first, next === undefined ? Infinity : next.since + this.windowMs);
  }

  /** Drops the targets that a later one replaced before the window. */
  private forget(now: number): void {
    while ((this.steps[1]?.since ?? Infinity) + this.windowMs <= now) this.steps.shift();
  }
}
