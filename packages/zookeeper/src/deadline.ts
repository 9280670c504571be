/** How long a recipe of many calls is wanted: until a deadline or a signal, whichever comes first. */

import type { CallOptions } from './api.js';
import { abortReason, type Clock, type Timer } from './clock.js';
import { TimeoutError } from './errors.js';

export class Deadline {
  /** For the calls that the recipe makes. */
  readonly options: CallOptions;
  private readonly controller: AbortController | undefined;
  private readonly timer: Timer | undefined;

  /** `what` names the recipe in the error of the deadline. Must be ended. */
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
      () => controller.abort(new TimeoutError('timeout', `${what}: not done within ${timeoutMs} ms`)),
      { background: true },
    );
  }

  get signal(): AbortSignal | undefined {
    return this.controller?.signal;
  }

  /** Throws the reason when it is over. */
  check(): void {
    if (this.signal?.aborted === true) throw abortReason(this.signal);
  }

  /** The reason when it is over, else `error`: what came of the calls that were given up is no news then. */
  reasonOr(error: unknown): unknown {
    return this.signal?.aborted === true ? abortReason(this.signal) : error;
  }

  end(): void {
    this.timer?.cancel();
    this.limits.signal?.removeEventListener('abort', this);
  }

  /** Called by the signal. */
  handleEvent(): void {
    if (this.limits.signal !== undefined) this.controller?.abort(abortReason(this.limits.signal));
  }
}

/** Settles as the promise does, or rejects with the reason of a signal that aborts before. */
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
