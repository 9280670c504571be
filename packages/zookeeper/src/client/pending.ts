/** Deadlines and abort signals of pending calls. */

import { abortReason, type Clock, type Timer } from '../clock.js';
import { Fifo } from './fifo.js';

export interface Pending {
  /** True once it was answered or failed. */
  readonly settled: boolean;
  /** Monotonic milliseconds; set by `Deadlines.add`. */
  deadline: number;
  /** Set by `AbortGroups.add`. */
  abortGroup: AbortGroup | undefined;
  timedOut(): void;
  aborted(reason: Error): void;
}

interface TimeoutQueue {
  readonly waiting: Fifo<Pending>;
  timer: Timer | undefined;
}

/**
 * Deadlines of many calls with few timers. Calls with the same timeout become due in the order in which they were
 * issued, so each distinct timeout has one queue and one timer for its head.
 */
export class Deadlines {
  private readonly queues = new Map<number, TimeoutQueue>();

  constructor(private readonly clock: Clock) {}

  add(pending: Pending, timeoutMs: number): void {
    let queue = this.queues.get(timeoutMs);
    if (queue === undefined) {
      queue = { waiting: new Fifo(), timer: undefined };
      this.queues.set(timeoutMs, queue);
    }
    pending.deadline = this.clock.monotonic() + timeoutMs;
    const { waiting } = queue;
    while (waiting.first?.settled === true) waiting.shift();
    waiting.push(pending);
    if (queue.timer === undefined) this.schedule(timeoutMs, queue, timeoutMs);
  }

  clear(): void {
    for (const queue of this.queues.values()) queue.timer?.cancel();
    this.queues.clear();
  }

  private schedule(timeoutMs: number, queue: TimeoutQueue, delayMs: number): void {
    const check = (): void => {
      this.check(timeoutMs, queue);
    };
    // In the background, because the connection or its attempt keeps the process alive already.
    queue.timer = this.clock.schedule(delayMs, check, { background: true });
  }

  private check(timeoutMs: number, queue: TimeoutQueue): void {
    queue.timer = undefined;
    const now = this.clock.monotonic();
    for (let head = queue.waiting.first; head !== undefined; head = queue.waiting.first) {
      if (!head.settled && head.deadline > now) {
        this.schedule(timeoutMs, queue, head.deadline - now);
        return;
      }
      queue.waiting.shift();
      if (!head.settled) head.timedOut();
    }
    this.queues.delete(timeoutMs);
  }
}

/** The pending calls of one abort signal. The signal gets one listener, not one per call. */
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

  /** The listener of the signal. */
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

  /** Adds `pending`, which must remove itself from its group when it settles. The signal must not be aborted yet. */
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
