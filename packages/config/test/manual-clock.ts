/** A clock that the test advances. */

import type { Clock, Timer } from '@nodepool/core';

export class ManualClock implements Clock {
  private time = 0;
  private timers: { at: number; callback: () => void }[] = [];

  now(): number {
    return this.time;
  }

  monotonic(): number {
    return this.time;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const timer = { at: this.time + delayMs, callback };
    this.timers.push(timer);
    return { cancel: () => (this.timers = this.timers.filter((each) => each !== timer)) };
  }

  advance(ms: number): void {
    this.time += ms;
    const due = this.timers.filter((timer) => timer.at <= this.time);
    this.timers = this.timers.filter((timer) => timer.at > this.time);
    for (const timer of due) timer.callback();
  }
}
