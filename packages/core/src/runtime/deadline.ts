/** Work that ends for its caller at a deadline or on abort, whatever the work itself does. */

import type { LinkedSignal } from './abort.js';
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
 * Returns a signal that aborts at the deadline or with the given signal. Its reason is the error created by
 * `onDeadline` or `onAbort`.
 */
export function deadlineSignal(limits: Deadline): LinkedSignal {
  const { signal: source, onDeadline, onAbort = (reason: Error) => reason } = limits;
  const controller = new AbortController();
  const unlink = (): void => {
    timer.cancel();
    source.removeEventListener('abort', abort);
  };
  const end = (error: Error): void => {
    unlink();
    controller.abort(error);
  };
  const abort = (): void => end(onAbort(abortReason(source)));
  const timer = limits.timers.schedule(limits.deadline, () => end(onDeadline()));
  if (source.aborted) abort();
  else source.addEventListener('abort', abort, { once: true });
  return { signal: controller.signal, unlink };
}

/**
 * Settles as `work` does, or rejects with the error of the deadline or of the abort if that comes first. The signal
 * passed to `work` aborts then too. An exception of `work` is a rejection; `work` is not called if the signal has
 * already aborted.
 */
export async function withDeadline<T>(limits: Deadline, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limited = deadlineSignal(limits);
  const { signal } = limited;
  try {
    signal.throwIfAborted();
    return await untilAborted(work(signal), signal);
  } finally {
    limited.unlink();
  }
}

/** Settles as the promise does, or rejects with the signal's reason if the signal aborts first. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(abortReason(signal));
    signal.addEventListener('abort', abort, { once: true });
    promise.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
    if (signal.aborted) abort();
  });
}
