/** Callers that wait for an event of the client, such as a session, each with a deadline and a signal. */

import { TimeoutError, ZooKeeperError } from '../errors.js';
import type { AbortGroup, AbortGroups, Deadlines, Pending } from './pending.js';

/** An event, as in error messages. */
export interface AwaitedEvent {
  readonly operation: string;
  /** Message of the `TimeoutError`, e.g. `no server confirmed a session`. */
  readonly timeoutMessage: string;
}

export class Waiters<T> {
  private readonly waiting = new Set<Waiter<T>>();

  constructor(
    private readonly event: AwaitedEvent,
    private readonly lastProblem: () => Error | undefined,
    private readonly deadlines: Deadlines,
    private readonly abortGroups: AbortGroups,
  ) {}

  /** The signal must not be aborted yet. */
  wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(this.event, timeoutMs, this.lastProblem, this.waiting, resolve, reject);
      this.deadlines.add(waiter, timeoutMs);
      if (signal !== undefined) this.abortGroups.add(waiter, signal);
    });
  }

  resolve(value: T): void {
    if (this.waiting.size === 0) return;
    for (const waiter of [...this.waiting]) waiter.succeed(value);
  }

  fail(error: ZooKeeperError): void {
    for (const waiter of [...this.waiting]) waiter.fail(error);
  }
}

class Waiter<T> implements Pending {
  settled = false;
  deadline = 0;
  abortGroup: AbortGroup | undefined;

  /** Adds itself to `all` until it settles. */
  constructor(
    private readonly event: AwaitedEvent,
    private readonly timeoutMs: number,
    private readonly lastProblem: () => Error | undefined,
    private readonly all: Set<Waiter<T>>,
    private readonly resolve: (value: T) => void,
    private readonly reject: (error: Error) => void,
  ) {
    all.add(this);
  }

  succeed(value: T): void {
    this.settle();
    this.resolve(value);
  }

  fail(error: ZooKeeperError): void {
    this.settle();
    this.reject(error);
  }

  timedOut(): void {
    const { operation, timeoutMessage } = this.event;
    const cause = this.lastProblem();
    const why = cause === undefined ? '' : `; last problem: ${cause.message}`;
    const message = `${timeoutMessage} within ${Math.round(this.timeoutMs)} ms${why}`;
    this.fail(new TimeoutError('timeout', message, { operation, cause }));
  }

  aborted(reason: Error): void {
    if (reason instanceof ZooKeeperError) this.fail(reason);
    else this.fail(new ZooKeeperError('aborted', `aborted by the caller: ${reason.message}`, { cause: reason }));
  }

  private settle(): void {
    this.settled = true;
    this.all.delete(this);
    this.abortGroup?.delete(this);
  }
}
