/**
 * How an instance is removed.
 *
 *     start ──> deleting ──> leaving ──> gone
 *
 * Deleting is safe to repeat, so a restored machine starts again. The node's record goes when this machine is complete: it
 * must be sure, and neither an accepted call nor a list that may be old is a proof.
 */

import {
  isDriverError,
  ListingPatience,
  PendingCall,
  type Advance,
  type Call,
  type ExternalId,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import { idOf } from './instance.js';

/** How long the cloud's list may lack what exists. */
const SETTLING = { settleRounds: 2, settleMs: 5000 };

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'leaving' | 'gone' = 'start';
  private readonly deletion = new PendingCall<void>();
  private readonly patience = new ListingPatience(SETTLING);

  constructor(
    readonly externalId: ExternalId,
    private readonly remove: (id: string, call: Call) => Promise<void>,
  ) {}

  get complete(): boolean {
    return this.state === 'gone';
  }

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

  /** There is nothing to remember. */
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
      // What does not exist needs no deletion. Of other errors the framework knows what they mean.
      if (isDriverError(error) && error.code === 'not-found') return this.finish();
      throw error;
    }
    this.state = 'leaving';
    return { next: 'listing' };
  }

  private watch({ listing }: MachineCall): Advance {
    if (listing === undefined) return { next: 'listing' };
    if (listing.byExternalId(this.externalId) !== undefined) {
      this.patience.reset();
      return { next: 'listing' };
    }
    return this.patience.missedIn(listing) ? this.finish() : { next: 'listing' };
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
