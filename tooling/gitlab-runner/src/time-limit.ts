/** Time limits of calls. */

import { deadlineSignal, systemClock, TimerQueue } from '@nodepool/core';

const timers = new TimerQueue(systemClock, { background: true });

/**
 * Returns a signal that aborts with `aborted` or after the time. On Node.js 22, `AbortSignal.any` can lose a signal of
 * `AbortSignal.timeout`.
 */
export function within(aborted: AbortSignal, timeoutMs: number): AbortSignal {
  const deadline = systemClock.monotonic() + timeoutMs;
  const onDeadline = (): Error => new Error(`it has not ended in ${timeoutMs / 1000} s`);
  return deadlineSignal({ timers, signal: aborted, deadline, onDeadline }).signal;
}
