/** Finding out whether a create call took effect whose outcome is unknown. */

import type { Instance } from '../api.js';
import type { DriverError } from '../errors.js';
import type { Advance, Listing, MachineCall } from '../state-machine-api.js';

export interface PatienceOptions {
  /** Listings that must lack the instance. Default 3. */
  readonly settleRounds?: number;
  /** Milliseconds from the first of them to the last. Default 10,000. */
  readonly settleMs?: number;
}

/**
 * Decides when something that listings do not show is not there: a list may lack the newest for a while, so several in
 * a row, over some time, have to agree.
 */
export class ListingPatience {
  private rounds = 0;
  private firstAskedAt = 0;
  private lastRound = -1;
  private readonly settleRounds: number;
  private readonly settleMs: number;

  constructor(options: PatienceOptions = {}) {
    this.settleRounds = options.settleRounds ?? 3;
    this.settleMs = options.settleMs ?? 10_000;
  }

  /** Tells of a listing that lacks it; true when that is final. */
  missedIn(listing: Listing): boolean {
    if (listing.round !== this.lastRound) {
      if (this.rounds === 0) this.firstAskedAt = listing.askedAt;
      this.rounds += 1;
      this.lastRound = listing.round;
    }
    return this.rounds >= this.settleRounds && listing.askedAt - this.firstAskedAt >= this.settleMs;
  }

  /** Tells that it was seen. */
  reset(): void {
    this.rounds = 0;
  }
}

export type LookupResult =
  | { readonly found: 'instance'; readonly instance: Instance }
  /** The call did not take effect, as far as anybody can tell: what shows up later is garbage, known by its attempt. */
  | { readonly found: 'nothing' }
  /** Not known yet; what `advance` shall return. */
  | { readonly found: 'unknown'; readonly advance: Advance };

/** Looks for the instance of a launch attempt; see `attemptLookup`. */
export class AttemptLookup {
  private asked = false;
  private readonly patience: ListingPatience;

  constructor(
    private readonly attempt: string,
    options?: PatienceOptions,
  ) {
    this.patience = new ListingPatience(options);
  }

  /**
   * To be called in each step until it is known. Looks only at listings that were asked for after the first call. `doubt` is
   * the failure of the creation; without one an earlier process began it. The log says when and why the search runs.
   */
  check({ listing, log }: Pick<MachineCall, 'listing' | 'log'>, doubt?: DriverError): LookupResult {
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
      if (this.patience.missedIn(listing)) {
        log.info('The search found no instance of the launch attempt', { attempt });
        return { found: 'nothing' };
      }
    }
    return { found: 'unknown', advance: { next: 'listing' } };
  }
}

/**
 * For machines: when the outcome of a create call is unknown, or the machine was made from one that had the call under
 * way, the cloud is searched for the attempt's tag before anything else is done.
 *
 * A create call is never repeated under the same attempt, even if nothing is found: fail with an error whose outcome is
 * `not-applied`, and the launcher tries again with a new attempt; a late twin can be told from that one by its tag.
 */
export function attemptLookup(attempt: string, options?: PatienceOptions): AttemptLookup {
  return new AttemptLookup(attempt, options);
}
