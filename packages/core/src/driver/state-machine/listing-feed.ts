/**
 * One listing for all who wait for one. Asked for when somebody waits, at most once per interval, never by a tick; a
 * failed listing is asked for again, with back-off, and fails nobody.
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

/** A listing that takes longer has failed. */
const LISTING_TIMEOUT_MS = 120_000;

export interface ListingFeedOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timers: TimerQueue;
  readonly log: Logger;
  /** Least milliseconds from the end of a listing (which may have waited for its turn behind other calls) to the next. */
  readonly intervalMs: number;
  readonly listInstances: (call: Call) => Promise<readonly Instance[]>;
}

/** Told, once, that there is a listing that was asked for after it began to wait. */
export interface ListingWaiter {
  listed(): void;
}

export class ListingFeed {
  private current: Listing | undefined;
  private error: DriverError | undefined;
  private rounds = 0;
  private failures = 0;
  private nextAt = -Infinity;
  private turn: Timer | undefined;
  /** Ends the listing under way. */
  private flight: AbortController | undefined;
  /** Whoever waits for the listing under way, and whoever came too late for it. */
  private asked = new Set<ListingWaiter>();
  private waiting = new Set<ListingWaiter>();

  constructor(private readonly options: ListingFeedOptions) {}

  /** The last complete listing. */
  get latest(): Listing | undefined {
    return this.current;
  }

  /** Why the last listing failed, if it did. */
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
    if (this.waiters === 0) this.giveUp();
  }

  /** Asks in the clock's next turn at the earliest: who begins to wait at the same moment shares the listing. */
  private plan(): void {
    if (this.flight !== undefined || this.turn !== undefined || this.waiting.size === 0) return;
    const at = Math.max(this.options.clock.monotonic(), this.nextAt);
    this.turn = this.options.timers.schedule(at, () => {
      this.turn = undefined;
      void this.ask();
    });
  }

  private giveUp(): void {
    this.turn?.cancel();
    this.turn = undefined;
    this.flight?.abort(new AbortedError('nobody waits for the list of instances any more'));
  }

  private async ask(): Promise<void> {
    const { clock, intervalMs } = this.options;
    const askedAt = clock.monotonic();
    this.asked = this.waiting;
    this.waiting = new Set();
    const flight = new AbortController();
    this.flight = flight;
    let listing: Listing | undefined;
    let failure: DriverError | undefined;
    try {
      listing = new IndexedListing(
        ++this.rounds,
        askedAt,
        await this.list(flight.signal, askedAt + LISTING_TIMEOUT_MS),
      );
    } catch (error) {
      if (!flight.signal.aborted) failure = toDriverError(error);
    }
    this.flight = undefined;
    this.nextAt = clock.monotonic() + intervalMs;
    if (failure !== undefined) this.fail(failure);
    if (listing !== undefined) this.succeed(listing);
    this.plan();
  }

  /** Ends at its deadline also when the driver does not. */
  private list(signal: AbortSignal, deadline: number): Promise<readonly Instance[]> {
    const { timers, log, listInstances } = this.options;
    const onDeadline = (): TimeoutError =>
      new TimeoutError(`the list of instances did not come within ${LISTING_TIMEOUT_MS} ms`);
    return withDeadline({ timers, signal, deadline, onDeadline }, async (bounded) =>
      checkInstances(await listInstances({ signal: bounded, deadline, log })),
    );
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
    const { clock, random, intervalMs, log } = this.options;
    this.error = error;
    this.failures += 1;
    for (const waiter of this.asked) this.waiting.add(waiter);
    this.asked = new Set();
    const delay = Math.max(intervalMs, backOffMs(this.failures, error, random));
    this.nextAt = clock.monotonic() + delay;
    const fields = { failures: this.failures, retry_in_ms: Math.round(delay) };
    if (ERROR_POLICIES[error.code].log === 'error') log.error('the instances could not be listed', error, fields);
    else log.warn('the instances could not be listed', { ...fields, error });
  }
}
