/**
 * How an instance is removed.
 *
 *     start ──> deleting ──────────> leaving
 *                 │   ^                 │
 *                 │   └─ not listed ────┘
 *                 └─ the answer says that it is gone ──> gone
 *
 * Deleting is safe to repeat, so a restored machine simply starts again. The node's record is removed when this machine
 * is complete: it must be sure. An accepted call is no proof, and a list that lacks the instance is none either, since
 * lists lag: one that was made a moment ago is not in it yet. So the list, which costs nothing, says when it is worth asking,
 * and the answer to one more deletion is the proof.
 */

import {
  NotFoundError,
  isDriverError,
  PendingCall,
  type Advance,
  type ExternalId,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { ExampleCloudApi } from './client.js';
import type { CloudInstance } from './cloud/types.js';

/** One that is asked for from now on. */
const FRESH_LISTING: Advance = { next: 'listing' };

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'leaving' | 'gone' = 'start';
  private readonly deletion = new PendingCall<CloudInstance>();

  constructor(
    private readonly cloud: ExampleCloudApi,
    readonly externalId: ExternalId,
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

  /** There is nothing to remember: a deletion that begins anew does no harm. */
  save(): JsonValue {
    return null;
  }

  private delete(call: MachineCall): Promise<CloudInstance> {
    const id = this.externalId;
    if (typeof id === 'string') return this.cloud.deleteInstance(id, call);
    return Promise.reject(new NotFoundError(`${JSON.stringify(id)} is no id of an instance of an example cloud`));
  }

  private afterDeletion(): Advance {
    try {
      if (this.deletion.take().state === 'deleted') return this.finish();
    } catch (error) {
      // What does not exist needs no deletion. Other errors are for the framework, which tries again, with a new machine.
      if (isDriverError(error) && error.code === 'not-found') return this.finish();
      throw error;
    }
    this.state = 'leaving';
    return FRESH_LISTING;
  }

  private watch(call: MachineCall): Advance {
    if (call.listing === undefined || call.listing.byExternalId(this.externalId) !== undefined) return FRESH_LISTING;
    this.state = 'deleting';
    return this.deletion.start(this.delete(call));
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
