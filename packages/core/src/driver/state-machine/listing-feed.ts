/**
 * A listing shared by all waiting machines. The feed requests a listing only while a machine waits, at most once per
 * interval. It retries a failed listing with back-off, without failing any machine.
 */

import type { Logger } from '../../runtime/logger.js';
import type { Clock, Timer } from '../../runtime/clock.js';
import { backOffMs } from '../../runtime/back-off.js';
import { withDeadline } from '../../runtime/deadline.js';
import type { RandomSource } from '../../runtime/random.js';
import type { TimerQueue } from '../../runtime/timer-queue.js';
import type { Call } from '../call.js';
import type { Instance } from '../api.js';
import { AbortedError, ERROR_POLICIES, TimeoutError, toDriverError, type DriverError } from '../errors.js';
import type { Listing } from '../state-machine-api.js';
import { checkInstances, IndexedListing } from './listing.js';

/**
 * First and longest time limit for one listing, in milliseconds. A listing that reaches the limit doubles it, because
 * all pages of a large account may take longer at a low rate of calls.
 */
const LISTING_TIMEOUT_MS = { first: 120_000, longest: 480_000 } as const;

export interface ListingFeedOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timers: TimerQueue;
  readonly log: Logger;
  /** Minimum time (ms) from the end of a listing, which may have waited in a task queue, to the next one. */
  readonly intervalMs: number;
  readonly listInstances: (call: Call) => Promise<readonly Instance[]>;
  /** Receives the failures of listings, which are repeated. */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
  /** Called at the begin of each listing; its result receives the instances. */
  readonly observeListing?: (() => (instances: readonly Instance[]) => void) | undefined;
}

/** A machine that waits for a listing. It is notified once, by the first listing requested after it began to wait. */
export interface ListingWaiter {
  listed(): void;
}

export class ListingFeed {
  private current: Listing | undefined;
  private error: DriverError | undefined;
  private rounds = 0;
  private failures = 0;
  private nextAt = -Infinity;
  private timeoutMs: number = LISTING_TIMEOUT_MS.first;
  private turn: Timer | undefined;
  /** Aborts the listing in progress. */
  private inFlight: AbortController | undefined;
  /** Waiters for the listing in progress (`asked`), and waiters for the next one (`waiting`). */
  private asked = new Set<ListingWaiter>();
  private waiting = new Set<ListingWaiter>();

  constructor(private readonly options: ListingFeedOptions) {}

  /** The latest complete listing. */
  get latest(): Listing | undefined {
    return this.current;
  }

  /** Error of the latest listing; undefined if it succeeded. */
  get lastError(): DriverError | undefined {
    return this.error;
  }

  get waiters(): number {
    return this.asked.size + this.waiting.size;
  }

  wait(waiter: ListingWaiter): void {
    this.waiting.add(waiter);
    this.plan();
  }

  cancel(waiter: ListingWaiter): void {
    this.waiting.delete(waiter);
    this.asked.delete(waiter);
    if (this.waiters === 0) this.abandon();
  }

  /** Ends the back-off after failures, because another call has listed the instances. */
  answered(): void {
    const { turn, error } = this;
    if (turn === undefined || error === undefined || error.code === 'throttled') return;
    this.failures = 0;
    this.nextAt = Math.min(this.nextAt, this.options.clock.monotonic() + this.options.intervalMs);
    turn.cancel();
    this.turn = undefined;
    this.plan();
  }

  /** Schedules a request in the clock's next turn or later, so that machines that begin to wait together share it. */
  private plan(): void {
    if (this.inFlight !== undefined || this.turn !== undefined || this.waiting.size === 0) return;
    const at = Math.max(this.options.clock.monotonic(), this.nextAt);
    this.turn = this.options.timers.schedule(at, () => {
      this.turn = undefined;
      void this.ask();
    });
  }

  private abandon(): void {
    this.turn?.cancel();
    this.turn = undefined;
    this.inFlight?.abort(new AbortedError('no launch or deletion waits for the list of instances'));
  }

  private async ask(): Promise<void> {
    const { clock, intervalMs } = this.options;
    const askedAt = clock.monotonic();
    this.asked = this.waiting;
    this.waiting = new Set();
    const inFlight = new AbortController();
    this.inFlight = inFlight;
    let listing: Listing | undefined;
    let failure: DriverError | undefined;
    try {
      listing = new IndexedListing(++this.rounds, askedAt, await this.list(inFlight.signal, askedAt));
    } catch (error) {
      if (!inFlight.signal.aborted) failure = toDriverError(error);
    }
    this.inFlight = undefined;
    this.adaptTimeout(clock.monotonic() - askedAt, listing !== undefined);
    this.nextAt = clock.monotonic() + intervalMs;
    if (failure !== undefined) this.fail(failure);
    if (listing !== undefined) this.succeed(listing);
    this.plan();
  }

  /** Requests the listing, limited to the timeout even if the driver ignores it. */
  private list(signal: AbortSignal, askedAt: number): Promise<readonly Instance[]> {
    const { timeoutMs } = this;
    const { timers, log, listInstances, observeListing } = this.options;
    const deadline = askedAt + timeoutMs;
    const onDeadline = (): TimeoutError =>
      new TimeoutError(`the list of instances did not arrive within ${timeoutMs} ms`);
    const observe = observeListing?.();
    return withDeadline({ timers, signal, deadline, onDeadline }, async (bounded) => {
      const instances = checkInstances(await listInstances({ signal: bounded, deadline, log }));
      bounded.throwIfAborted();
      observe?.(instances);
      return instances;
    });
  }

  /** A listing that arrives sets the limit to twice its duration, within the bounds. */
  private adaptTimeout(durationMs: number, arrived: boolean): void {
    const { first, longest } = LISTING_TIMEOUT_MS;
    if (arrived || durationMs >= this.timeoutMs) this.timeoutMs = Math.min(Math.max(2 * durationMs, first), longest);
  }

  private succeed(listing: Listing): void {
    this.current = listing;
    this.error = undefined;
    this.failures = 0;
    for (const waiter of this.asked) {
      this.asked.delete(waiter);
      waiter.listed();
    }
  }

  private fail(error: DriverError): void {
    const { clock, random, intervalMs, log, onRetry } = this.options;
    onRetry?.(error);
    this.error = error;
    this.failures += 1;
    for (const waiter of this.asked) this.waiting.add(waiter);
    this.asked = new Set();
    const delay = Math.max(intervalMs, backOffMs(this.failures, error, random));
    this.nextAt = clock.monotonic() + delay;
    const fields = { failures: this.failures, retry_in_ms: Math.round(delay) };
    if (ERROR_POLICIES[error.code].log === 'error') log.error('The instances could not be listed', error, fields);
    else log.warn('The instances could not be listed', { ...fields, error });
  }
}
