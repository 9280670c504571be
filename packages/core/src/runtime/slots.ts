/** A semaphore with a fixed number of slots, acquired in the order of the requests. */

import { abortReason } from './clock.js';

/** A caller that waits for a slot. */
interface Waiter {
  readonly signal: AbortSignal;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

export class Slots {
  private taken = 0;
  private readonly queue = new Set<Waiter>();
  /**
   * Numbers of waiting callers by signal. A signal gets one listener, not one per caller, because a signal compares
   * each new listener with all others.
   */
  private readonly waiting = new Map<AbortSignal, number>();

  constructor(private readonly count: number) {}

  /** Number of callers that wait for a slot. */
  get queueLength(): number {
    return this.queue.size;
  }

  /** Number of slots in use. */
  get inUse(): number {
    return this.taken;
  }

  /** Runs `work` once a slot is free. Rejects with the signal's reason if the signal aborts first. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.taken < this.count) this.taken += 1;
    else await this.inherit(signal);
    try {
      return await work();
    } finally {
      this.pass();
    }
  }

  /** Waits until another caller passes on its slot. */
  private inherit(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = this.waiting.get(signal) ?? 0;
      if (waiting === 0) signal.addEventListener('abort', this.onAbort, { once: true });
      this.waiting.set(signal, waiting + 1);
      this.queue.add({ signal, resolve, reject });
    });
  }

  private pass(): void {
    for (const next of this.queue) {
      this.leave(next);
      next.resolve();
      return;
    }
    this.taken -= 1;
  }

  private leave(waiter: Waiter): void {
    const { signal } = waiter;
    this.queue.delete(waiter);
    const waiting = (this.waiting.get(signal) ?? 1) - 1;
    if (waiting > 0) {
      this.waiting.set(signal, waiting);
      return;
    }
    this.waiting.delete(signal);
    signal.removeEventListener('abort', this.onAbort);
  }

  private readonly onAbort = (): void => {
    for (const waiter of this.queue) {
      if (!waiter.signal.aborted) continue;
      this.leave(waiter);
      waiter.reject(abortReason(waiter.signal));
    }
  };
}
