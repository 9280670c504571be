/** Waits for events of a client and for errors of promises. */

import type { Clock, Timer, ZooKeeper, ZooKeeperError, ZooKeeperEvents } from '../../src/index.js';

/** Resolves with the arguments of the next event that `accept` accepts. */
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

/** Resolves with the error of a rejected promise. */
export async function errorOf(promise: Promise<unknown>): Promise<ZooKeeperError> {
  try {
    await promise;
  } catch (error) {
    return error as ZooKeeperError;
  }
  throw new Error('it was expected to reject');
}

/** Waits for one turn of the event loop, after which all issued requests are sent. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A clock that the test advances. */
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

  /** Advances the clock as if the process were blocked, then runs the due timers but not those that they schedule. */
  holdUp(ms: number): void {
    this.time += ms;
    const due = this.timers.filter(({ at }) => at <= this.time).sort((one, other) => one.at - other.at);
    this.timers = this.timers.filter((timer) => !due.includes(timer));
    for (const { callback } of due) callback();
  }

  /** Advances the clock and runs the due timers in order. */
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
