/** What waits for an answer, and the two things that end the wait early: deadlines and abort signals. */

import { abortReason, type Clock, type Timer } from '../clock.js';
import { Fifo } from './fifo.js';

export interface Pending {
  /** True once it was answered, or was given up. */
  readonly settled: boolean;
  /** Monotonic milliseconds; set by `Deadlines.add`. */
  deadline: number;
  /** Set by `AbortGroups.add`. */
  abortGroup: AbortGroup | undefined;
  timedOut(): void;
  aborted(reason: Error): void;
}

interface Lane {
  readonly waiting: Fifo<Pending>;
  timer: Timer | undefined;
}

/**
 * Deadlines of many calls with few timers. Calls with the same timeout become due in the order in which they were made,
 * so each distinct timeout has a queue, and one timer for its head; what is settled is skipped.
 */
export class Deadlines {
  private readonly lanes = new Map<number, Lane>();

  constructor(private readonly clock: Clock) {}

  add(pending: Pending, timeoutMs: number): void {
    let lane = this.lanes.get(timeoutMs);
    if (lane === undefined) {
      lane = { waiting: new Fifo(), timer: undefined };
      this.lanes.set(timeoutMs, lane);
    }
    pending.deadline = this.clock.monotonic() + timeoutMs;
    for (let head = lane.waiting.peek(); head?.settled === true; head = lane.waiting.peek()) lane.waiting.shift();
    lane.waiting.push(pending);
    if (lane.timer === undefined) this.schedule(timeoutMs, lane, timeoutMs);
  }

  /** Forgets everything. */
  clear(): void {
    for (const lane of this.lanes.values()) lane.timer?.cancel();
    this.lanes.clear();
  }

  private schedule(timeoutMs: number, lane: Lane, delayMs: number): void {
    const check = (): void => {
      this.check(timeoutMs, lane);
    };
    // The connection, or the attempt to get one, keeps the process alive; a deadline alone need not.
    lane.timer = this.clock.schedule(delayMs, check, { background: true });
  }

  private check(timeoutMs: number, lane: Lane): void {
    lane.timer = undefined;
    const now = this.clock.monotonic();
    for (let head = lane.waiting.peek(); head !== undefined; head = lane.waiting.peek()) {
      if (!head.settled && head.deadline > now) {
        this.schedule(timeoutMs, lane, head.deadline - now);
        return;
      }
      lane.waiting.shift();
      if (!head.settled) head.timedOut();
    }
    this.lanes.delete(timeoutMs);
  }
}

/** All that waits under one abort signal: a signal gets one listener, however many calls it covers. */
export class AbortGroup {
  private readonly members = new Set<Pending>();

  constructor(
    private readonly signal: AbortSignal,
    private readonly onEmpty: (signal: AbortSignal) => void,
  ) {
    signal.addEventListener('abort', this, { once: true });
  }

  add(pending: Pending): void {
    this.members.add(pending);
  }

  delete(pending: Pending): void {
    this.members.delete(pending);
    if (this.members.size > 0) return;
    this.signal.removeEventListener('abort', this);
    this.onEmpty(this.signal);
  }

  /** Called by the signal. */
  handleEvent(): void {
    const reason = abortReason(this.signal);
    for (const pending of [...this.members]) pending.aborted(reason);
  }
}

export class AbortGroups {
  private readonly groups = new Map<AbortSignal, AbortGroup>();
  private readonly forget = (signal: AbortSignal): void => {
    this.groups.delete(signal);
  };

  /** `pending` must take itself out of its group when it is settled. The signal must not be aborted yet. */
  add(pending: Pending, signal: AbortSignal): void {
    let group = this.groups.get(signal);
    if (group === undefined) {
      group = new AbortGroup(signal, this.forget);
      this.groups.set(signal, group);
    }
    group.add(pending);
    pending.abortGroup = group;
  }
}
