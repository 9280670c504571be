/** Work that ends for its caller at a deadline or when a signal aborts, whatever the work itself does. */

import { abortReason } from './clock.js';
import type { TimerQueue } from './timer-queue.js';

export interface Deadline {
  readonly timers: TimerQueue;
  readonly signal: AbortSignal;
  /** `Clock.monotonic` milliseconds; `Infinity` for none. */
  readonly deadline: number;
  /** Creates the error of the deadline. */
  readonly onDeadline: () => Error;
  /** Creates the error of an aborted signal from its reason. Default: the reason. */
  readonly onAbort?: (reason: Error) => Error;
}

/**
 * Settles as `work` does, or rejects with the error of the deadline or of the aborted signal if that comes first. The signal
 * that `work` gets then aborts with the same error. `work` may throw where it should reject; it is not called if the signal
 * has aborted before.
 */
export function withDeadline<T>(limits: Deadline, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { signal, onDeadline, onAbort = (reason: Error) => reason } = limits;
  if (signal.aborted) return Promise.reject(onAbort(abortReason(signal)));
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', abort);
    };
    const giveUp = (error: Error): void => {
      end();
      reject(error);
      controller.abort(error);
    };
    const abort = (): void => giveUp(onAbort(abortReason(signal)));
    const timer = limits.timers.schedule(limits.deadline, () => giveUp(onDeadline()));
    signal.addEventListener('abort', abort, { once: true });
    const start = async (): Promise<T> => work(controller.signal);
    start().finally(end).then(resolve, reject);
  });
}

/** Settles as the promise does, or rejects with the reason of the signal if that aborts first. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(abortReason(signal));
    signal.addEventListener('abort', abort, { once: true });
    promise.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
    if (signal.aborted) abort();
  });
}
