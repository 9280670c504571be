/** What wants to be looked at, and when: each key once, soon after something happened to it or at a time of its own. */

import type { Clock, Timer } from '@nodepool/core';

/** Longer waits are cut into pieces: timers have a longest delay. */
const LONGEST_MS = 86_400_000;

export class Agenda {
  private readonly timers = new Map<string, { readonly timer: Timer; readonly at: number }>();

  constructor(
    private readonly clock: Clock,
    /** Told early, when the time is far away: it looks again, and says so again. */
    private readonly look: (key: string) => void,
  ) {}

  /** Looks at the key once everything that has happened together has been told. */
  soon(key: string): void {
    this.after(key, 0);
  }

  /** Looks at the key after so many milliseconds, or earlier if that was said before. */
  after(key: string, delayMs: number): void {
    // Rounded up: who looks a fraction too early would look again and again until it is time.
    const delay = Math.min(Math.max(0, Math.ceil(delayMs)), LONGEST_MS);
    const at = this.clock.monotonic() + delay;
    const known = this.timers.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.timer.cancel();
    const look = (): void => {
      this.timers.delete(key);
      this.look(key);
    };
    this.timers.set(key, { at, timer: this.clock.schedule(delay, look, { background: true }) });
  }

  clear(): void {
    for (const { timer } of this.timers.values()) timer.cancel();
    this.timers.clear();
  }
}
