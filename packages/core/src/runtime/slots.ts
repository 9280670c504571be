/** A semaphore with a fixed number of slots, acquired in the order of the requests. */

import { addAbortCallback, removeAbortCallback } from './abort-callbacks.js';
import { abortReason } from './clock.js';

export class Slots {
  private taken = 0;
  private readonly queue = new Set<() => void>();

  constructor(private readonly count: number) {}

  /** Number of callers that wait for a slot. */
  get queueLength(): number {
    return this.queue.size;
  }

  get inUse(): number {
    return this.taken;
  }

  /** Runs `work` once a slot is free. Rejects with the signal's reason if the signal aborts first. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const release = await this.acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Resolves once a slot is free, with a function that releases it. Rejects with the signal's reason on abort. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const release = this.tryAcquire();
    if (release !== undefined) return release;
    await this.inherit(signal);
    return this.releaser();
  }

  /** Acquires a slot if one is free. Returns the function that releases it, or undefined. */
  tryAcquire(): (() => void) | undefined {
    if (this.taken >= this.count) return undefined;
    this.taken += 1;
    return this.releaser();
  }

  private releaser(): () => void {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.pass();
    };
  }

  /** Waits until another caller passes on its slot. */
  private inherit(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.queue.delete(take);
        reject(abortReason(signal));
      };
      const take = (): void => {
        removeAbortCallback(signal, onAbort);
        resolve();
      };
      addAbortCallback(signal, onAbort);
      this.queue.add(take);
    });
  }

  private pass(): void {
    for (const next of this.queue) {
      this.queue.delete(next);
      next();
      return;
    }
    this.taken -= 1;
  }
}
