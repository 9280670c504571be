/**
 * Isolates the launcher from faulty drivers: a driver that throws instead of rejecting, or that never answers, affects
 * only the caller.
 */

import {
  AbortedError,
  LimitedWork,
  TimeoutError,
  TimerQueue,
  toDriverError,
  type Call,
  type Clock,
} from '@nodepool/core';

/**
 * Grace period after the deadline, in milliseconds, for the driver to report the timeout itself: its error has more
 * details.
 */
const GRACE_MS = 1000;

/** One queue per clock for the deadlines of all calls, which are rarely reached. */
const timersOf = new WeakMap<Clock, TimerQueue>();

/**
 * Resolves as `work` does. Rejects with the error of `work` (converted to a `DriverError` if it is not an `Error`),
 * with a `TimeoutError` shortly after the deadline, or with an `AbortedError` once the signal or one of `others`
 * aborts; in the last two cases the signal passed to `work` aborts. `what` names the work in messages, e.g.
 * `the launch of node 0000000001`.
 */
export function driverCall<T>(
  clock: Clock,
  what: string,
  call: Call,
  work: (call: Call) => Promise<T>,
  others?: readonly AbortSignal[],
): Promise<T> {
  return new DriverCall(clock, what, call, others).run(work);
}

/** A call of `driverCall` that its owner can end. */
export class DriverCall {
  private readonly limited: LimitedWork;

  constructor(
    clock: Clock,
    what: string,
    private readonly call: Call,
    others: readonly AbortSignal[] = [],
  ) {
    let timers = timersOf.get(clock);
    if (timers === undefined) timersOf.set(clock, (timers = new TimerQueue(clock)));
    this.limited = new LimitedWork({
      timers,
      signal: call.signal,
      others,
      deadline: call.deadline + GRACE_MS,
      onDeadline: () => new TimeoutError(`${what} did not end in time, and the driver did not say why`),
      onAbort: (cause: Error) => new AbortedError(`${what} was abandoned`, { cause }),
    });
  }

  run<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const { deadline, log } = this.call;
    return this.limited.run((signal) => work({ signal, deadline, log })).catch(throwAsError);
  }

  /** Rejects with the error, and aborts the signal passed to `work`, unless the call has ended. */
  end(error: Error): void {
    this.limited.end(error);
  }
}

function throwAsError(error: unknown): never {
  throw error instanceof Error ? error : toDriverError(error);
}
