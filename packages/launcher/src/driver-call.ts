/**
 * Calls a driver without depending on it: a driver that throws where it should reject, or that never answers, delays
 * only the work that called it.
 */

import {
  AbortedError,
  TimeoutError,
  TimerQueue,
  toDriverError,
  withDeadline,
  type Call,
  type Clock,
} from '@nodepool/core';

/** Time after the deadline in which the driver may report the timeout itself, milliseconds: it knows more about it. */
const GRACE_MS = 1000;

/**
 * Resolves as `work` does. Rejects with the error of `work` (as a `DriverError` if it is no `Error`), with a
 * `TimeoutError` shortly after the deadline, and with an `AbortedError` once the signal aborts; the signal passed to
 * `work` aborts in both cases. `what` names the work in messages, e.g. `the launch of node 0000000001`.
 */
export async function driverCall<T>(
  clock: Clock,
  what: string,
  call: Call,
  work: (call: Call) => Promise<T>,
): Promise<T> {
  const limits = {
    timers: new TimerQueue(clock),
    signal: call.signal,
    deadline: call.deadline + GRACE_MS,
    onDeadline: () => new TimeoutError(`${what} did not end in time, and the driver did not say why`),
    onAbort: (cause: Error) => new AbortedError(`${what} was given up`, { cause }),
  };
  try {
    return await withDeadline(limits, (signal) => work({ ...call, signal }));
  } catch (error) {
    throw error instanceof Error ? error : toDriverError(error);
  }
}
