/** Waiting for what a client tells, and looking at how a promise ended. */

import type { Clock, Timer, ZooKeeper, ZooKeeperError, ZooKeeperEvents } from '../../src/index.js';

/** The arguments of the next such event (for which `accept` holds). */
export function eventOf<E extends keyof ZooKeeperEvents>(
  client: ZooKeeper,
  event: E,
  accept: (...args: ZooKeeperEvents[E]) => boolean = () => true,
): Promise<ZooKeeperEvents[E]> {
  return new Promise((resolve) => {
    const listener = (...args: ZooKeeperEvents[E]): void => {
      if (!accept(...args)) return;
      client.off(event, listener);
      resolve(args);
    };
    client.on(event, listener);
  });
}

/** The error with which the promise rejects. */
export async function errorOf(promise: Promise<unknown>): Promise<ZooKeeperError> {
  try {
    await promise;
  } catch (error) {
    return error as ZooKeeperError;
  }
  throw new Error('it was expected to reject');
}

/** One turn of the event loop: what was issued before is sent after it. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A clock that the test moves. */
export class ManualClock implements Clock {
  private time = 0;
  private timers: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.time;
  }

  monotonic(): number {
    return this.time;
  }

  get pending(): number {
    return this.timers.length;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const timer = { at: this.time + delayMs, callback };
    this.timers.push(timer);
    return {
      cancel: () => {
        this.timers = this.timers.filter((other) => other !== timer);
      },
    };
  }

  /** Time passes while the process is held up; then what became due runs, without what it schedules anew. */
  holdUp(ms: number): void {
    this.time += ms;
    const due = this.timers.filter(({ at }) => at <= this.time).sort((one, other) => one.at - other.at);
    this.timers = this.timers.filter((timer) => !due.includes(timer));
    for (const { callback } of due) callback();
  }

  /** Moves on, and runs what became due, in the order of its time. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const [next] = this.timers.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      this.timers = this.timers.filter((timer) => timer !== next);
      this.time = Math.max(this.time, next.at);
      next.callback();
    }
    this.time = end;
  }
}
