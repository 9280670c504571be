/** A clock for tests and simulations that moves only on request. */

import type { Clock, Timer } from '../runtime/clock.js';

export interface VirtualClockOptions {
  /** Wall clock at the start, milliseconds since the epoch. Default: the start of 2026. */
  readonly startMs?: number;
}

interface Entry extends Timer {
  readonly dueAt: number;
  /** Order of scheduling, which decides between timers of the same time. */
  readonly order: number;
  callback: (() => void) | undefined;
}

const DEFAULT_START_MS = Date.UTC(2026, 0, 1);
/** Number of cancelled timers above which they are removed, provided that they are more than half of all timers. */
const SWEEP_AT = 256;
/** Maximum number of timers that run without time passing. More indicate an endless loop. */
const MAX_AT_ONCE = 100_000;

/**
 * Runs timers in the order of their times, and equal ones in the order of their scheduling. After each timer, all
 * pending promise callbacks run before the next timer, so that a run is fully reproducible. Time passes in whole
 * milliseconds, rounded up; the option `background` has no effect.
 */
export class VirtualClock implements Clock {
  private time = 0;
  private wallStart: number;
  private heap: Entry[] = [];
  private scheduled = 0;
  private live = 0;
  private running = false;
  private ranAtThisTime = 0;

  constructor(options: VirtualClockOptions = {}) {
    this.wallStart = options.startMs ?? DEFAULT_START_MS;
  }

  now(): number {
    return this.wallStart + this.time;
  }

  monotonic(): number {
    return this.time;
  }

  get pending(): number {
    return this.live;
  }

  /** Time at which the next timer is due, in `monotonic` milliseconds; undefined if there is none. */
  get nextDueAt(): number | undefined {
    return this.peek()?.dueAt;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const entry: Entry = {
      dueAt: Math.ceil(this.time + Math.max(0, delayMs)),
      order: this.scheduled++,
      callback,
      cancel: () => {
        if (entry.callback === undefined) return;
        entry.callback = undefined;
        this.live--;
        if (this.heap.length > SWEEP_AT && this.heap.length > this.live * 2) this.sweep();
      },
    };
    this.live++;
    this.push(entry);
    return entry;
  }

  /** Moves the wall clock forward or back, as an administrator or a faulty time server does, but not `monotonic`. */
  jumpWallClock(byMs: number): void {
    this.wallStart += byMs;
  }

  /** Runs all pending promise callbacks, including those that they cause, without any time passing. */
  settle(): Promise<void> {
    // All microtasks, however long the chain, run before the event loop enters its next phase.
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Lets `ms` milliseconds pass and runs the timers that are due in them. */
  async advance(ms: number): Promise<void> {
    const end = Math.ceil(this.time + ms);
    await this.exclusively(async () => {
      while (this.runNextDue(end)) await this.settle();
      this.time = end;
      await this.settle();
    });
  }

  /** Runs the next timer, whenever it is due. Returns false if there is none. */
  async runNext(): Promise<boolean> {
    return this.exclusively(async () => {
      const ran = this.runNextDue(Infinity);
      await this.settle();
      return ran;
    });
  }

  /** Runs timers until `condition` holds. Returns false if it does not after the last timer or `limitMs`. */
  async runUntil(condition: () => boolean, limitMs = Infinity): Promise<boolean> {
    const end = Math.ceil(this.time + limitMs);
    return this.exclusively(async () => {
      while (!condition()) {
        if (this.runNextDue(end)) {
          await this.settle();
          continue;
        }
        if (end !== Infinity) this.time = end;
        return condition();
      }
      return true;
    });
  }

  private async exclusively<T>(run: () => Promise<T>): Promise<T> {
    if (this.running) throw new Error('this virtual clock is already running; await the earlier call');
    this.running = true;
    try {
      await this.settle();
      return await run();
    } finally {
      this.running = false;
    }
  }

  private runNextDue(end: number): boolean {
    const entry = this.peek();
    if (entry === undefined || entry.dueAt > end) return false;
    this.pop();
    this.countAt(Math.max(this.time, entry.dueAt));
    const { callback } = entry;
    entry.callback = undefined;
    this.live--;
    callback?.();
    return true;
  }

  private countAt(time: number): void {
    if (time !== this.time) this.ranAtThisTime = 0;
    this.time = time;
    this.ranAtThisTime++;
    if (this.ranAtThisTime > MAX_AT_ONCE) {
      throw new Error(
        `${MAX_AT_ONCE} timers ran while the virtual clock stood at ${time} ms: they schedule each other endlessly`,
      );
    }
  }

  /** Returns the next timer that was not cancelled. */
  private peek(): Entry | undefined {
    for (;;) {
      const top = this.heap[0];
      if (top === undefined || top.callback !== undefined) return top;
      this.pop();
    }
  }

  private sweep(): void {
    this.heap = this.heap.filter((entry) => entry.callback !== undefined).sort((a, b) => (before(a, b) ? -1 : 1));
  }

  private push(entry: Entry): void {
    const { heap } = this;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || before(parent, entry)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = entry;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = index * 2 + 1;
      let next = heap[left];
      if (next === undefined) break;
      let nextIndex = left;
      const right = heap[left + 1];
      if (right !== undefined && before(right, next)) {
        next = right;
        nextIndex = left + 1;
      }
      if (before(last, next)) break;
      heap[index] = next;
      index = nextIndex;
    }
    heap[index] = last;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}
