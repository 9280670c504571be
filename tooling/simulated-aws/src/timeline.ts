/** The changes of the cloud that happen by themselves at certain times. */

import type { Clock } from '@nodepool/core';

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: (at: number) => void;
}

/**
 * Runs events in the order of their times, as soon as a call or a test looks at the cloud after them. It needs no
 * timers, so a virtual clock can pass over any number of events.
 */
export class Timeline {
  private entries: Entry[] = [];
  private order = 0;
  private isSettling = false;

  constructor(private readonly clock: Clock) {}

  get now(): number {
    return this.clock.now();
  }

  /** Runs an event at a time; at once if the time has come and no other event is due before. */
  at(time: number, run: (at: number) => void): void {
    const entry = { at: time, order: this.order++, run };
    const position = this.entries.findLastIndex(({ at }) => at <= time) + 1;
    this.entries.splice(position, 0, entry);
    this.settle();
  }

  /** Time of the next event; Infinity if there is none. */
  get nextAt(): number {
    return this.entries[0]?.at ?? Infinity;
  }

  /** Runs all events that are due. */
  settle(): void {
    if (this.isSettling) return;
    this.isSettling = true;
    try {
      for (let next = this.entries[0]; next !== undefined && next.at <= this.clock.now(); next = this.entries[0]) {
        this.entries.shift();
        next.run(next.at);
      }
    } finally {
      this.isSettling = false;
    }
  }
}
