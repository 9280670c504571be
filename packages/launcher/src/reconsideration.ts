/**
 * Goes through all requests again after a change that any decision may depend on: some thousands of them would hold up
 * everything else, so it lets others have a turn in between. A change in the middle of it makes it begin again.
 */

import type { Clock, Timer } from '@nodepool/core';

/** Requests that are looked at in one go: a few milliseconds. */
const AT_ONCE = 250;

export class Reconsideration {
  private remaining: Iterator<string> | undefined;
  private again = false;
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    /** Ids of the requests, in the order in which they shall be looked at. */
    private readonly ids: () => Iterable<string>,
    private readonly consider: (id: string) => void,
    /** Called when all have been looked at. */
    private readonly done: () => void,
  ) {}

  /** The first requests are looked at right now. */
  begin(): void {
    if (this.remaining !== undefined) {
      this.again = true;
      return;
    }
    this.remaining = [...this.ids()][Symbol.iterator]();
    this.goOn();
  }

  stop(): void {
    this.timer?.cancel();
    this.remaining = undefined;
  }

  private goOn(): void {
    for (let looked = 0; looked < AT_ONCE; looked += 1) {
      const next = this.remaining?.next();
      if (next === undefined) return;
      if (next.done === true) {
        this.end();
        return;
      }
      this.consider(next.value);
    }
    this.timer = this.clock.schedule(0, () => this.goOn());
  }

  private end(): void {
    this.remaining = undefined;
    if (this.again) {
      this.again = false;
      this.begin();
    } else this.done();
  }
}
