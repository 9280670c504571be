import { retryAfterMsOf } from '../runtime/back-off.js';
import { sleep, type Clock } from '../runtime/clock.js';
import type { Call } from './call.js';
import { deadlineOf } from './call-waits.js';
import { DriverError, ERROR_POLICIES, TimeoutError, toDriverError } from './errors.js';

/** State of an operation. */
export type OperationState<T> =
  | { readonly state: 'running'; readonly retryAfterMs?: number | undefined }
  | { readonly state: 'succeeded'; readonly result: T }
  /** The error has the outcome of the operation, e.g. `applied` if a broken resource exists. */
  | { readonly state: 'failed'; readonly error: DriverError };

export interface OperationPoll<T> {
  /** Names the operation in messages. */
  readonly what: string;
  readonly clock: Clock;
  /** Time between two reads, if the cloud demands no other (ms). */
  readonly intervalMs: number;
  /** Reads the state with one call. */
  readonly read: (call: Call) => Promise<OperationState<T>>;
}

/**
 * Resolves with the result of an accepted operation. Rejects with the operation's own error if it fails. Repeats a read
 * of its state after temporary failures, until the call's deadline. Other failed reads leave the outcome `unknown`.
 */
export async function endOfOperation<T>({ what, clock, intervalMs, read }: OperationPoll<T>, call: Call): Promise<T> {
  for (;;) {
    let waitMs: number;
    try {
      const progress = await read(call);
      if (progress.state === 'succeeded') return progress.result;
      if (progress.state === 'failed') throw new Failed(progress.error);
      waitMs = progress.retryAfterMs ?? intervalMs;
    } catch (error) {
      if (error instanceof Failed) throw error.error;
      const failure = toDriverError(error);
      if (!ERROR_POLICIES[failure.code].mayPass || isOver(clock, call)) throw unfollowed(what, failure);
      waitMs = Math.max(intervalMs, retryAfterMsOf(failure));
    }
    if (isOver(clock, call)) throw new TimeoutError(`${what} did not end in time`);
    await sleep(clock, Math.min(waitMs, deadlineOf(call) - clock.monotonic()), call.signal);
  }
}

/** The failure of an operation, as opposed to that of a read. */
class Failed extends Error {
  constructor(readonly error: DriverError) {
    super(error.message);
  }
}

function isOver(clock: Clock, call: Call): boolean {
  return deadlineOf(call) <= clock.monotonic();
}

function unfollowed(what: string, failure: DriverError): DriverError {
  // A missing operation does not mean that the resource is missing.
  const code = failure.code === 'not-found' ? 'transient' : failure.code;
  return new DriverError(code, `${what}: ${failure.message}`, { outcome: 'unknown', cause: failure });
}
