/**
 * State machine that deletes an instance.
 *
 *     start ──> deleting ──> leaving ──> gone
 *
 * A deletion can safely be repeated, so a resumed machine starts from the beginning. The machine must be certain, since
 * the node's record is deleted afterwards: neither an accepted call nor a single, possibly outdated listing is proof.
 * After an accepted call, it sends no other one, because the cloud may have given the id to a new instance.
 */

import {
  isDriverError,
  ListingDeadline,
  PendingCall,
  type Advance,
  type Call,
  type ExternalId,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import { idOf } from './instance.js';

/** Limits how long listings may lack an existing instance. */
const SETTLING = { settleRounds: 2, settleMs: 5000 };

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'leaving' | 'gone' = 'start';
  private readonly deletion = new PendingCall<void>();
  private readonly listingDeadline = new ListingDeadline(SETTLING);

  constructor(
    readonly externalId: ExternalId,
    private readonly remove: (id: string, call: Call) => Promise<void>,
  ) {}

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'deleting';
        return this.deletion.start(this.delete(call));
      case 'deleting':
        return this.deletion.underway ?? this.afterDeletion();
      case 'leaving':
        return this.watch(call);
      case 'gone':
        return { next: 'complete' };
    }
  }

  /** Returns null, as there is no state to save. */
  save(): JsonValue {
    return null;
  }

  private async delete(call: Call): Promise<void> {
    await this.remove(idOf(this.externalId), call);
  }

  private afterDeletion(): Advance {
    try {
      this.deletion.take();
    } catch (error) {
      // An instance that does not exist needs no deletion. The framework handles every other error.
      if (isDriverError(error) && error.code === 'not-found') return this.finish();
      throw error;
    }
    this.state = 'leaving';
    return { next: 'listing' };
  }

  private watch({ listing }: MachineCall): Advance {
    if (listing === undefined) return { next: 'listing' };
    if (listing.byExternalId(this.externalId) !== undefined) {
      this.listingDeadline.reset();
      return { next: 'listing' };
    }
    return this.listingDeadline.missedIn(listing) ? this.finish() : { next: 'listing' };
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
