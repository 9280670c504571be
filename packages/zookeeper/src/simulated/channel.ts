/** One direction of a simulated connection: ordered, with configurable delays and stalls. */

import type { Clock } from '../clock.js';
import { Fifo } from '../client/fifo.js';

export class Channel<T> {
  private readonly queue = new Fifo<{ readonly dueAt: number; readonly message: T }>();
  private lastDueAt = 0;
  private scheduled = false;
  private closed = false;
  private held = false;
  private readonly pump = (): void => {
    this.scheduled = false;
    this.deliverDue();
  };

  /** `delayMs` is called for each message. Messages arrive in the order of `push`. */
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: () => number,
    private readonly deliver: (message: T) => void,
  ) {}

  push(message: T): void {
    if (this.closed) return;
    this.lastDueAt = Math.max(this.lastDueAt, this.clock.monotonic() + this.delayMs());
    this.queue.push({ dueAt: this.lastDueAt, message });
    this.schedule();
  }

  /** Stalls or resumes delivery. Stalled messages arrive after the resumption. */
  hold(held: boolean): void {
    this.held = held;
    if (!held) this.schedule();
  }

  close(): void {
    this.closed = true;
    this.queue.takeAll();
  }

  private schedule(): void {
    const head = this.queue.first;
    if (head === undefined || this.scheduled || this.held) return;
    this.scheduled = true;
    const wait = head.dueAt - this.clock.monotonic();
    if (wait <= 0) queueMicrotask(this.pump);
    else this.clock.schedule(wait, this.pump);
  }

  private deliverDue(): void {
    const now = this.clock.monotonic();
    while (!this.closed && !this.held) {
      const head = this.queue.first;
      if (head === undefined) return;
      if (head.dueAt > now) break;
      this.queue.shift();
      this.deliver(head.message);
    }
    this.schedule();
  }
}
