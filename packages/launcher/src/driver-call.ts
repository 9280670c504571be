/**
 * Asks a driver for something without depending on it: one that throws where it should reject, or never answers, whatever
 * the deadline says, holds up only what it was asked for.
 */

import { AbortedError, TimeoutError, toDriverError, type Call, type Clock, type DriverError } from '@nodepool/core';

/** After the deadline, milliseconds: a driver that keeps to it says better than we do what it was waiting for. */
const GRACE_MS = 1000;

/**
 * Resolves as `work` does. Rejects with a `DriverError`, or with what `work` rejects with if that is an error of its own
 * kind; with a `TimeoutError` a moment after the deadline; and with an `AbortedError` at once when the signal aborts.
 * The signal that `work` gets aborts then, too. `what` is what it is in words, e.g. `the launch of node 0000000001`.
 */
export function driverCall<T>(clock: Clock, what: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
  const abandon = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const finish = (): void => {
      timer.cancel();
      call.signal.removeEventListener('abort', onAbort);
    };
    const giveUp = (error: DriverError): void => {
      finish();
      abandon.abort(error);
      reject(error);
    };
    const onAbort = (): void => giveUp(new AbortedError(`${what} was given up`, { cause: call.signal.reason }));
    const timer = clock.schedule(call.deadline + GRACE_MS - clock.monotonic(), () =>
      giveUp(new TimeoutError(`${what} did not end in time, and the driver did not say why`)),
    );
    call.signal.addEventListener('abort', onAbort, { once: true });
    if (call.signal.aborted) {
      onAbort();
      return;
    }
    callSafely(() => work({ ...call, signal: abandon.signal })).then(
      (value) => {
        finish();
        resolve(value);
      },
      (error: unknown) => {
        finish();
        reject(error instanceof Error ? error : toDriverError(error));
      },
    );
  });
}

/** A driver may throw where it should reject. */
async function callSafely<T>(work: () => Promise<T>): Promise<T> {
  return work();
}
