/** A caller of `connected` who waits for a confirmed session. */

import type { Session } from '../api.js';
import { TimeoutError, ZooKeeperError } from '../errors.js';
import type { AbortGroup, Pending } from './pending.js';

export class ConnectedWaiter implements Pending {
  settled = false;
  deadline = 0;
  abortGroup: AbortGroup | undefined;

  /** Is in `waiters` for as long as it waits. */
  constructor(
    private readonly timeoutMs: number,
    private readonly lastProblem: () => Error | undefined,
    private readonly waiters: Set<ConnectedWaiter>,
    private readonly resolve: (session: Session) => void,
    private readonly reject: (error: Error) => void,
  ) {
    waiters.add(this);
  }

  connected(session: Session): void {
    this.settle();
    this.resolve(session);
  }

  fail(error: ZooKeeperError): void {
    this.settle();
    this.reject(error);
  }

  timedOut(): void {
    const cause = this.lastProblem();
    const why = cause === undefined ? '' : `; last problem: ${cause.message}`;
    const message = `no ZooKeeper server confirmed a session within ${Math.round(this.timeoutMs)} ms${why}`;
    this.fail(new TimeoutError('timeout', message, { operation: 'connected', cause }));
  }

  aborted(reason: Error): void {
    if (reason instanceof ZooKeeperError) this.fail(reason);
    else this.fail(new ZooKeeperError('aborted', `the caller gave up waiting: ${reason.message}`, { cause: reason }));
  }

  private settle(): void {
    this.settled = true;
    this.waiters.delete(this);
    this.abortGroup?.delete(this);
  }
}
