/** A number of places that callers share, in the order in which they ask. */

import { abortReason } from './clock.js';

export class Slots {
  private taken = 0;
  private readonly queue = new Set<() => void>();

  constructor(private readonly count: number) {}

  /** Callers that wait for a place. */
  get queueLength(): number {
    return this.queue.size;
  }

  /** Places that are taken. */
  get inUse(): number {
    return this.taken;
  }

  /** Does `work` once there is a place for it. Rejects with the signal's reason when that comes first. */
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

  /** Waits until somebody passes a place on. */
  private inherit(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.queue.delete(take);
        reject(abortReason(signal));
      };
      const take = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      signal.addEventListener('abort', onAbort, { once: true });
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
