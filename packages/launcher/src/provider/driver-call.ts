/**
 * Asks a driver for something without depending on it: one that throws where it should reject, or never answers, whatever
 * the deadline says, holds up only what it was asked for.
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

/** After the deadline, milliseconds: a driver that keeps to it says better than we do what it was waiting for. */
const GRACE_MS = 1000;

/**
 * Resolves as `work` does. Rejects with a `DriverError`, or with what `work` rejects with if that is an error of its own
 * kind; with a `TimeoutError` a moment after the deadline; and with an `AbortedError` at once when the signal aborts.
 * The signal that `work` gets aborts then, too. `what` is what it is in words, e.g. `the launch of node 0000000001`.
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
