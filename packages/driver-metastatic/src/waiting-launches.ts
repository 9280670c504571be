/** The launches of this process that wait for a slot. */

import type { Call, DriverError } from '@nodepool/core';
import type { Waiter } from './round.js';
import type { Placement, SlotWant } from './slots.js';

export class WaitingLaunches implements Iterable<Waiter> {
  private readonly waiters = new Set<Waiter>();

  /** `onChange` is called when a launch begins or ends to wait. */
  constructor(private readonly onChange: () => void) {}

  /** Resolves or rejects with the result of the waiter; rejects when the signal of the call aborts. */
  add(want: SlotWant, { signal }: Pick<Call, 'signal'>, onRetry?: (error: DriverError) => void): Promise<Placement> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.waiters.delete(waiter);
        signal.removeEventListener('abort', onAbort);
        // The launch may have been the only one that a request was for.
        this.onChange();
      };
      const onAbort = (): void => {
        end();
        reject(signal.reason instanceof Error ? signal.reason : new Error('the launch was aborted'));
      };
      const waiter: Waiter = {
        ...want,
        onRetry,
        resolve: (placement) => {
          end();
          resolve(placement);
        },
        reject: (error) => {
          end();
          reject(error);
        },
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener('abort', onAbort);
      this.waiters.add(waiter);
      this.onChange();
    });
  }

  /** Iterates over the present waiters; they may end meanwhile. */
  [Symbol.iterator](): Iterator<Waiter> {
    return [...this.waiters][Symbol.iterator]();
  }
}
