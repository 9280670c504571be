/**
 * Many timers on one timer of the clock, so that a thousand deadlines cost one timer of the process. They form a
 * pairing heap, since most timers are cancelled: it adds a timer with one comparison, and cancels most without any.
 */

import type { Clock, Timer } from './clock.js';

/** Maximum time that a timer may run early because sums of times are rounded, in milliseconds. */
const ROUNDING_MS = 0.001;

export class TimerQueue {
  /** The root of the heap, which may be cancelled; the other entries are pending, and not earlier. */
  private first: Entry | undefined;
  private pending = 0;
  private armed: { readonly at: number; readonly timer: Timer } | undefined;
  private firing = false;
  private scheduled = 0;

  /** `background: true` lets the process end while timers are pending. */
  constructor(
    private readonly clock: Clock,
    private readonly options: { readonly background?: boolean } = {},
  ) {}

  get size(): number {
    return this.pending;
  }

  /**
   * Runs `callback` once at `at` (`Clock.monotonic` milliseconds), never within this call and in the order of the
   * times. A timer at `Infinity` never runs. An exception of `callback` is that of a timer of the clock.
   */
  schedule(at: number, callback: () => void): Timer {
    const entry = new Entry(this, at, this.scheduled++, callback);
    if (at === Infinity) return entry;
    entry.isPending = true;
    this.pending += 1;
    const { first } = this;
    this.first = first === undefined ? entry : meld(first, entry);
    if (this.first !== entry) return entry;
    if (first?.isPending === false) this.cut(first);
    this.arm();
    return entry;
  }

  /**
   * Removes a cancelled entry; called by `Entry.cancel`. The first one stays until its time, since its removal would
   * compare the entries below it.
   */
  remove(entry: Entry): void {
    entry.isPending = false;
    this.pending -= 1;
    if (entry !== this.first) this.cut(entry);
    if (this.pending > 0) return;
    this.first = undefined;
    this.armed?.timer.cancel();
    this.armed = undefined;
  }

  /** Removes an entry below the first one from the heap. */
  private cut(entry: Entry): void {
    const { previous, next } = entry;
    if (previous?.child === entry) previous.child = next;
    else if (previous !== undefined) previous.next = next;
    if (next !== undefined) next.previous = previous;
    entry.previous = undefined;
    entry.next = undefined;
    const below = meldChildren(entry);
    if (below !== undefined && this.first !== undefined) this.first = meld(this.first, below);
  }

  /** Arms a timer for the first entry. One that is armed for an earlier time stays, and arms the next when it fires. */
  private arm(): void {
    const { first } = this;
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
    while (this.first !== undefined && this.first.at <= now) {
      if (this.first.isPending) due.push(this.first);
      this.first.isPending = false;
      this.first = meldChildren(this.first);
    }
    this.pending -= due.length;
    this.run(due, 0);
  }

  /** Runs due timers from an index on. */
  private run(due: readonly Entry[], from: number): void {
    let next = from;
    try {
      while (next < due.length) due[next++]?.run();
    } finally {
      if (next < due.length) {
        // The exception reaches the process, as that of a timer of the clock does, and the other timers still run.
        this.clock.schedule(0, () => this.run(due, next), this.options);
      } else {
        this.firing = false;
        this.arm();
      }
    }
  }
}

class Entry implements Timer {
  /** False once the entry has run or is cancelled. */
  isPending = false;
  /** The first of the entries below this one; the other ones follow as its siblings. */
  child: Entry | undefined;
  next: Entry | undefined;
  /** The sibling before this entry; for a first child, the entry above. */
  previous: Entry | undefined;
  private cancelled = false;

  constructor(
    private readonly queue: TimerQueue,
    readonly at: number,
    readonly sequence: number,
    private readonly callback: () => void,
  ) {}

  run(): void {
    if (!this.cancelled) this.callback();
  }

  cancel(): void {
    this.cancelled = true;
    if (this.isPending) this.queue.remove(this);
  }
}

/** Combines two heaps: the later of their roots becomes the first child of the earlier one, which is returned. */
function meld(one: Entry, other: Entry): Entry {
  const isFirst = one.at < other.at || (one.at === other.at && one.sequence < other.sequence);
  const root = isFirst ? one : other;
  const child = isFirst ? other : one;
  child.previous = root;
  child.next = root.child;
  if (root.child !== undefined) root.child.previous = child;
  root.child = child;
  return root;
}

/**
 * Removes the children of an entry and returns them as one heap. Combines them in pairs first, and then the pairs from
 * the last to the first; a removal takes logarithmic time on average because of this order.
 */
function meldChildren(entry: Entry): Entry | undefined {
  let pairs: Entry | undefined;
  for (let child = entry.child; child !== undefined;) {
    const sibling: Entry | undefined = child.next;
    const following: Entry | undefined = sibling?.next;
    const pair: Entry = sibling === undefined ? child : meld(child, sibling);
    pair.next = pairs;
    pairs = pair;
    child = following;
  }
  entry.child = undefined;
  if (pairs === undefined) return undefined;
  let root = pairs;
  for (let pair = pairs.next; pair !== undefined;) {
    const { next }: Entry = pair;
    root = meld(root, pair);
    pair = next;
  }
  root.next = undefined;
  root.previous = undefined;
  return root;
}
