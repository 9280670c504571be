/**
 * Many timers on one timer of the clock, in a binary heap, so that a thousand deadlines cost one timer of the process.
 */

import type { Clock, Timer } from './clock.js';

/** Maximum time that a timer may run early because sums of times are rounded, in milliseconds. */
const ROUNDING_MS = 0.001;

export class TimerQueue {
  private readonly heap: Entry[] = [];
  private armed: { readonly at: number; readonly timer: Timer } | undefined;
  private firing = false;
  private scheduled = 0;

  /** `background: true` lets the process end while timers are pending. */
  constructor(
    private readonly clock: Clock,
    private readonly options: { readonly background?: boolean } = {},
  ) {}

  /** Number of pending timers. */
  get size(): number {
    return this.heap.length;
  }

  /**
   * Runs `callback` once at `at` (`Clock.monotonic` milliseconds), never within this call and in the order of the
   * times. A timer at `Infinity` never runs.
   */
  schedule(at: number, callback: () => void): Timer {
    const entry = new Entry(this, at, this.scheduled++, callback);
    if (at === Infinity) return entry;
    entry.index = this.heap.push(entry) - 1;
    this.siftUp(entry);
    this.arm();
    return entry;
  }

  /** Removes an entry from the heap; called by `Entry.cancel`. */
  remove(entry: Entry): void {
    const last = this.heap.pop();
    if (last !== undefined && last !== entry) {
      last.index = entry.index;
      this.heap[last.index] = last;
      this.siftUp(last);
      this.siftDown(last);
    }
    entry.index = -1;
    if (this.heap.length > 0) return;
    this.armed?.timer.cancel();
    this.armed = undefined;
  }

  /**
   * Arms a timer for the first entry. A timer that is armed for an earlier time stays, and arms the next one when it
   * fires.
   */
  private arm(): void {
    const first = this.heap[0];
    if (this.firing || first === undefined || (this.armed !== undefined && this.armed.at <= first.at)) return;
    this.armed?.timer.cancel();
    const delayMs = Math.max(first.at - this.clock.monotonic(), 0);
    const timer = this.clock.schedule(delayMs, () => this.fire(), this.options);
    this.armed = { at: first.at, timer };
  }

  private fire(): void {
    this.armed = undefined;
    this.firing = true;
    const now = this.clock.monotonic() + ROUNDING_MS;
    const due: Entry[] = [];
    for (let first = this.heap[0]; first !== undefined && first.at <= now; first = this.heap[0]) {
      this.remove(first);
      due.push(first);
    }
    for (const entry of due) entry.run();
    this.firing = false;
    this.arm();
  }

  private siftUp(entry: Entry): void {
    while (entry.index > 0) {
      const parent = this.heap[(entry.index - 1) >>> 1];
      if (parent === undefined || !entry.before(parent)) return;
      this.swap(parent, entry);
    }
  }

  private siftDown(entry: Entry): void {
    for (;;) {
      const left = this.heap[2 * entry.index + 1];
      const right = this.heap[2 * entry.index + 2];
      const child = left !== undefined && right !== undefined && right.before(left) ? right : left;
      if (child === undefined || !child.before(entry)) return;
      this.swap(entry, child);
    }
  }

  private swap(upper: Entry, lower: Entry): void {
    const place = upper.index;
    upper.index = lower.index;
    lower.index = place;
    this.heap[upper.index] = upper;
    this.heap[lower.index] = lower;
  }
}

class Entry implements Timer {
  /** Position in the heap; -1 if the entry is not in the heap. */
  index = -1;
  private cancelled = false;

  constructor(
    private readonly queue: TimerQueue,
    readonly at: number,
    private readonly sequence: number,
    private readonly callback: () => void,
  ) {}

  before(other: Entry): boolean {
    return this.at < other.at || (this.at === other.at && this.sequence < other.sequence);
  }

  run(): void {
    if (!this.cancelled) this.callback();
  }

  cancel(): void {
    this.cancelled = true;
    if (this.index >= 0) this.queue.remove(this);
  }
}
