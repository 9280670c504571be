/** Determines whether a create call with an unknown outcome took effect. */

import { nothingApplied } from '../applied-calls.js';
import type { Instance } from '../api.js';
import type { DriverError } from '../errors.js';
import type { Advance, Listing, MachineCall } from '../state-machine-api.js';

export interface ListingDeadlineOptions {
  /** Number of listings that must lack the instance. Default 3. */
  readonly settleRounds?: number;
  /** Minimum time from the first of these listings to the last, in milliseconds. Default 10,000. */
  readonly settleMs?: number;
}

/**
 * Decides when an instance that listings do not show is certainly absent. A listing may lack the newest instances for a
 * while, so several consecutive listings over some time have to agree.
 */
export class ListingDeadline {
  private rounds = 0;
  private firstAskedAt = 0;
  private lastRound = -1;
  private readonly settleRounds: number;
  private readonly settleMs: number;

  constructor(options: ListingDeadlineOptions = {}) {
    this.settleRounds = options.settleRounds ?? 3;
    this.settleMs = options.settleMs ?? 10_000;
  }

  /** Records a listing that lacks the instance. Returns true once the instance is certainly absent. */
  missedIn(listing: Listing): boolean {
    if (listing.round !== this.lastRound) {
      if (this.rounds === 0) this.firstAskedAt = listing.askedAt;
      this.rounds += 1;
      this.lastRound = listing.round;
    }
    return this.rounds >= this.settleRounds && listing.askedAt - this.firstAskedAt >= this.settleMs;
  }

  /** Records that a listing shows the instance. */
  reset(): void {
    this.rounds = 0;
  }
}

export type LookupResult =
  | { readonly found: 'instance'; readonly instance: Instance }
  /** The call did not take effect, as far as listings show. A later instance is a leak with its attempt's tag. */
  | { readonly found: 'nothing' }
  /** The outcome is still unknown; `advance` must return the given value. */
  | { readonly found: 'unknown'; readonly advance: Advance };

/** Searches for the instance of a launch attempt; see `attemptLookup`. */
export class AttemptLookup {
  private asked = false;
  private readonly listingDeadline: ListingDeadline;

  constructor(
    private readonly attempt: string,
    options?: ListingDeadlineOptions,
  ) {
    this.listingDeadline = new ListingDeadline(options);
  }

  /**
   * Returns the state of the search; called in each step until the outcome is known. Considers only listings requested
   * after the first call. `doubt` is the failure of the create call, absent if an earlier process sent the call; it
   * appears in the log.
   */
  check({ listing, log, signal }: Pick<MachineCall, 'listing' | 'log' | 'signal'>, doubt?: DriverError): LookupResult {
    const { attempt } = this;
    if (!this.asked) {
      this.asked = true;
      log.info('Searching the cloud for the instance of a launch attempt whose outcome is unknown', {
        attempt,
        reason: doubt?.message ?? 'an earlier process began the attempt',
      });
    } else if (listing !== undefined) {
      const [instance] = listing.byTag('nodepool_launch_attempt', attempt);
      if (instance !== undefined) {
        log.info('The search found the instance of the launch attempt', { attempt, external_id: instance.externalId });
        return { found: 'instance', instance };
      }
      if (this.listingDeadline.missedIn(listing)) {
        log.info('The search found no instance of the launch attempt', { attempt });
        nothingApplied(signal);
        return { found: 'nothing' };
      }
    }
    return { found: 'unknown', advance: { next: 'listing' } };
  }
}

/**
 * Creates a search for a launch attempt by its tag. A machine searches before any other step if the outcome of its
 * create call is unknown, or if it was resumed while the call was in progress.
 *
 * If nothing is found, the machine fails with the outcome `not-applied` and the launcher retries with a new attempt:
 * under the same attempt, an instance created late could not be distinguished.
 */
export function attemptLookup(attempt: string, options?: ListingDeadlineOptions): AttemptLookup {
  return new AttemptLookup(attempt, options);
}
