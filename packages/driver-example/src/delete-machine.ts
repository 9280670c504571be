/**
 * State machine that deletes an instance.
 *
 *     start ──> deleting ──────────> leaving
 *                 │   ^                 │
 *                 │   └─ not listed ────┘
 *                 └─ the response reports the deletion ──> gone
 *
 * A deletion can safely be repeated, so a resumed machine starts from the beginning. Neither an accepted call nor a
 * listing, which may lag, proves the deletion: once listings lack the instance, the machine repeats the call as proof.
 * In a cloud that uses ids again, the repeated call could delete another instance, so several listings have to agree.
 */

import type { Advance, ExternalId, JsonValue, MachineCall, StateMachine } from '@nodepool/core';
import { ListingDeadline, NotFoundError, isDriverError, PendingCall } from '@nodepool/core';
import type { ExampleCloudApi } from './client/client.js';
import type { CloudInstance } from './cloud/types.js';

/** The next step needs a listing requested from now on. */
const FRESH_LISTING: Advance = { next: 'listing' };

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'leaving' | 'gone' = 'start';
  private readonly deletion = new PendingCall<CloudInstance>();
  private readonly listingDeadline = new ListingDeadline();

  constructor(
    private readonly cloud: ExampleCloudApi,
    readonly externalId: ExternalId,
    private readonly uniqueIds: boolean,
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

  /** Returns null: a deletion can safely restart, so there is no state to save. */
  save(): JsonValue {
    return null;
  }

  private delete(call: MachineCall): Promise<CloudInstance> {
    const id = this.externalId;
    if (typeof id === 'string') return this.cloud.deleteInstance(id, call);
    return Promise.reject(new NotFoundError(`${JSON.stringify(id)} is not the id of an instance of an example cloud`));
  }

  private afterDeletion(): Advance {
    try {
      if (this.deletion.take().state === 'deleted') return this.finish();
    } catch (error) {
      // An instance that does not exist needs no deletion. The framework retries other errors with a new machine.
      if (isDriverError(error) && error.code === 'not-found') return this.finish();
      throw error;
    }
    this.state = 'leaving';
    return FRESH_LISTING;
  }

  private watch(call: MachineCall): Advance {
    const { listing } = call;
    if (listing === undefined) return FRESH_LISTING;
    if (listing.byExternalId(this.externalId) !== undefined) {
      this.listingDeadline.reset();
      return FRESH_LISTING;
    }
    if (!this.uniqueIds) return this.listingDeadline.missedIn(listing) ? this.finish() : FRESH_LISTING;
    this.state = 'deleting';
    return this.deletion.start(this.delete(call));
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
