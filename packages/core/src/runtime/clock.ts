/** The source of time for all code in this workspace, which a simulation can replace. */

import { performance } from 'node:perf_hooks';

/** A scheduled callback. `cancel` is idempotent and has no effect after the callback ran. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since the epoch. May jump; use for timestamps that other programs read. */
  now(): number;
  /** Monotonic milliseconds since an arbitrary start. Use for durations and deadlines. */
  monotonic(): number;
  /** Runs `callback` once after `delayMs` (0 or more). A `background` timer does not keep the process alive. */
  schedule(delayMs: number, callback: () => void, options?: { background?: boolean }): Timer;
}

/** Maximum delay that Node.js accepts for a timer. A longer delay would fire immediately. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The real time of this process, without wrappers: a node's life reads it a hundred times. */
export const systemClock: Clock = {
  now: Date.now,
  monotonic: performance.now.bind(performance),
  schedule(delayMs, callback, options) {
    if (delayMs <= 0) {
      // A timer of Node.js waits for a millisecond at least.
      const immediate = setImmediate(callback);
      if (options?.background === true) immediate.unref();
      return { cancel: () => clearImmediate(immediate) };
    }
    let handle: NodeJS.Timeout | undefined;
    const wait = (leftMs: number): void => {
      const ms = Math.min(Math.max(leftMs, 0), MAX_DELAY_MS);
      // eslint-disable-next-line no-restricted-globals -- the one place where real timers are made
      handle = setTimeout(() => (leftMs > ms ? wait(leftMs - ms) : callback()), ms);
      if (options?.background === true) handle.unref();
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs`. Rejects with the signal's reason if the signal aborts first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(abortReason(signal));
      return;
    }
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = (): void => {
      timer.cancel();
      reject(signal === undefined ? new Error('aborted') : abortReason(signal));
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Returns the reason of an aborted signal, always as an `Error`. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error(`aborted: ${String(reason)}`);
}
