/** Calls to an adapter that end for their callers at a deadline or on abort, whatever the adapter does. */

import { abortReason } from '../../runtime/clock.js';
import { withDeadline } from '../../runtime/deadline.js';
import type { TimerQueue } from '../../runtime/timer-queue.js';
import type { Call } from '../call.js';
import { AbortedError, TimeoutError, toDriverError } from '../errors.js';
import { removeSecrets } from '../secrets.js';

/** The calls in progress; `stop` ends them. */
export class GuardedCalls {
  private readonly stopping = new AbortController();

  constructor(private readonly timers: TimerQueue) {}

  /**
   * Makes the call with a signal that also aborts at the deadline and at `stop`. Rejects with a `DriverError`,
   * immediately if the signal aborts.
   */
  async make<T>(name: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    const { deadline, log } = call;
    const stopped = this.stopping.signal;
    if (stopped.aborted) throw new AbortedError(`${name}: the provider was stopped`, { outcome: 'not-applied' });
    if (call.signal.aborted) {
      throw new AbortedError(`${name} was aborted`, { outcome: 'not-applied', cause: abortReason(call.signal) });
    }
    const limits = {
      timers: this.timers,
      signal: call.signal,
      others: [stopped],
      deadline,
      onDeadline: () => new TimeoutError(`${name} had no answer in time`),
      onAbort: (cause: Error) =>
        stopped.aborted && stopped.reason === cause ? cause : new AbortedError(`${name} was aborted`, { cause }),
    };
    try {
      return await withDeadline(limits, (signal) => work({ signal, deadline, log }));
    } catch (error) {
      throw removeSecrets(toDriverError(error));
    }
  }

  stop(): void {
    this.stopping.abort(new AbortedError('the provider was stopped'));
  }
}
