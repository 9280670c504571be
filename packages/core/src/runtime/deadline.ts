/** Work that ends for its caller at a deadline or on abort, whatever the work itself does. */

import { CallbackController, addAbortCallback, removeAbortCallback } from './abort-callbacks.js';
import type { LinkedSignal } from './abort.js';
import { abortReason, type Timer } from './clock.js';
import type { TimerQueue } from './timer-queue.js';

export interface Deadline {
  readonly timers: TimerQueue;
  readonly signal: AbortSignal;
  /** Further signals that abort the work. */
  readonly others?: readonly AbortSignal[];
  /** `Clock.monotonic` milliseconds; `Infinity` for none. */
  readonly deadline: number;
  /** Creates the error of the deadline. */
  readonly onDeadline: () => Error;
  /** Creates the error of an aborted signal from its reason. Default: the reason. */
  readonly onAbort?: (reason: Error) => Error;
}

/** Returns a signal that aborts at the deadline or with the given ones, for the reason of `onDeadline` or `onAbort`. */
export function deadlineSignal(limits: Deadline): LinkedSignal {
  const limited = new LimitedWork(limits);
  return { signal: limited.signal, unlink: () => limited.unlink() };
}

/**
 * Settles as `work` does, or rejects with the error of the deadline or of the abort if that comes first. The signal
 * passed to `work` aborts then too. An exception of `work` is a rejection; `work` is not called if the signal has
 * already aborted.
 */
export function withDeadline<T>(limits: Deadline, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return new LimitedWork(limits).run(work);
}

/** One work with its limits; see `withDeadline`. Its signal aborts at the deadline or when a source aborts. */
export class LimitedWork {
  private readonly controller = new CallbackController();
  private readonly timer: Timer;
  private ended = false;
  private reject: ((error: unknown) => void) | undefined;

  constructor(private readonly limits: Deadline) {
    const { timers, deadline, onDeadline, signal, others = NONE } = limits;
    this.timer = timers.schedule(deadline, () => this.end(onDeadline()));
    if (!this.follow(signal)) return;
    for (const other of others) if (!this.follow(other)) return;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Runs the work; called once at most. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { signal } = this.controller;
      signal.throwIfAborted();
      this.reject = reject;
      const fail = (error: unknown): void => {
        this.unlink();
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the error of the work, unchanged
        reject(error);
      };
      try {
        work(signal).then((result) => {
          this.unlink();
          resolve(result);
        }, fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  /** Rejects with the error and aborts the signal, unless the work has ended. */
  end(error: Error): void {
    if (this.ended) return;
    this.unlink();
    this.controller.abort(error);
    this.reject?.(error);
  }

  unlink(): void {
    this.ended = true;
    this.timer.cancel();
    const { signal, others = NONE } = this.limits;
    removeAbortCallback(signal, this.abort);
    for (const other of others) removeAbortCallback(other, this.abort);
  }

  /** Returns false if the source has already aborted. */
  private follow(source: AbortSignal): boolean {
    const { aborted } = source;
    if (aborted) this.finish(source);
    else addAbortCallback(source, this.abort);
    return !aborted;
  }

  private readonly abort = (): void => {
    const { signal, others = NONE } = this.limits;
    const source = [signal, ...others].find(({ aborted }) => aborted);
    if (source !== undefined) this.finish(source);
  };

  private finish(source: AbortSignal): void {
    const reason = abortReason(source);
    this.end(this.limits.onAbort?.(reason) ?? reason);
  }
}

const NONE: readonly AbortSignal[] = [];

/** Settles as the promise does, or rejects with the signal's reason if the signal aborts first. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(abortReason(signal));
    signal.addEventListener('abort', abort, { once: true });
    promise.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
    if (signal.aborted) abort();
  });
}
