/** Calls to an adapter that end for their callers when they shall, whatever the adapter does. */

import { abortReason } from '../../runtime/clock.js';
import type { Call } from '../api.js';
import { AbortedError, TimeoutError, toDriverError, type DriverError } from '../errors.js';
import type { TimerQueue } from '../../runtime/timer-queue.js';

/** The calls under way; `stop` ends them. */
export class GuardedCalls {
  private readonly underway = new Set<(error: DriverError) => void>();
  private stopped = false;

  constructor(private readonly timers: TimerQueue) {}

  /**
   * Makes the call with a signal that also aborts at the deadline and at `stop`. Rejects with a `DriverError`, at once when
   * the signal aborts.
   */
  async make<T>(name: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    if (this.stopped) throw new AbortedError(`${name}: the provider was stopped`, { outcome: 'not-applied' });
    if (call.signal.aborted) {
      throw new AbortedError(`${name} was aborted`, { outcome: 'not-applied', cause: abortReason(call.signal) });
    }
    return new Promise<T>((resolve, reject) => {
      const controller = new AbortController();
      const cleanUp = (): void => {
        deadline.cancel();
        call.signal.removeEventListener('abort', onAbort);
        this.underway.delete(giveUp);
      };
      const giveUp = (error: DriverError): void => {
        cleanUp();
        reject(error);
        controller.abort(error);
      };
      const onAbort = (): void => {
        giveUp(new AbortedError(`${name} was aborted`, { cause: abortReason(call.signal) }));
      };
      const deadline = this.timers.schedule(call.deadline, () => {
        giveUp(new TimeoutError(`${name} had no answer in time`));
      });
      call.signal.addEventListener('abort', onAbort, { once: true });
      this.underway.add(giveUp);
      const start = async (): Promise<T> => work({ signal: controller.signal, deadline: call.deadline, log: call.log });
      void start().then(
        (result) => {
          cleanUp();
          resolve(result);
        },
        (error: unknown) => {
          cleanUp();
          reject(toDriverError(error));
        },
      );
    });
  }

  stop(): void {
    this.stopped = true;
    for (const giveUp of this.underway) giveUp(new AbortedError('the provider was stopped'));
  }
}
