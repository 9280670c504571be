/** Limits a recipe of many calls: by a deadline and by a signal. */

import type { CallOptions } from './api.js';
import { abortReason, type Clock, type Timer } from './clock.js';
import { TimeoutError } from './errors.js';

export class Deadline {
  /** Options for the calls of the recipe. */
  readonly options: CallOptions;
  private readonly controller: AbortController | undefined;
  private readonly timer: Timer | undefined;

  /** `what` names the recipe in the `TimeoutError`. Call `end` when the recipe is done. */
  constructor(
    clock: Clock,
    what: string,
    private readonly limits: CallOptions,
  ) {
    const { signal, timeoutMs } = limits;
    if (signal === undefined && timeoutMs === undefined) {
      this.options = {};
      return;
    }
    const controller = new AbortController();
    this.controller = controller;
    this.options = { signal: controller.signal };
    if (signal?.aborted === true) controller.abort(abortReason(signal));
    else signal?.addEventListener('abort', this);
    if (timeoutMs === undefined) return;
    this.timer = clock.schedule(
      timeoutMs,
      () => controller.abort(new TimeoutError('timeout', `${what}: timed out after ${timeoutMs} ms`)),
      { background: true },
    );
  }

  get signal(): AbortSignal | undefined {
    return this.controller?.signal;
  }

  /** Throws the reason if the deadline has passed or the signal has aborted. */
  check(): void {
    if (this.signal?.aborted === true) throw abortReason(this.signal);
  }

  /** Returns the reason if the limit was reached, else `error`. The limit explains the failures of aborted calls. */
  reasonOr(error: unknown): unknown {
    return this.signal?.aborted === true ? abortReason(this.signal) : error;
  }

  end(): void {
    this.timer?.cancel();
    this.limits.signal?.removeEventListener('abort', this);
  }

  /** The listener of the caller's signal. */
  handleEvent(): void {
    if (this.limits.signal !== undefined) this.controller?.abort(abortReason(this.limits.signal));
  }
}

/** Settles as `promise` does, or rejects with the reason of the first signal that aborts before. */
export function untilAborted<T>(promise: Promise<T>, signals: readonly (AbortSignal | undefined)[]): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (event: Event): void => {
      finish();
      reject(event.target instanceof AbortSignal ? abortReason(event.target) : new Error('aborted'));
    };
    const finish = (): void => {
      for (const signal of signals) signal?.removeEventListener('abort', onAbort);
    };
    for (const signal of signals) {
      if (signal?.aborted === true) {
        finish();
        reject(abortReason(signal));
        return;
      }
      signal?.addEventListener('abort', onAbort);
    }
    promise.finally(finish).then(resolve, reject);
  });
}
