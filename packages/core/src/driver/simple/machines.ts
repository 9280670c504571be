/** State machines of the simple framework: each sends one call, then waits for listings that show its effect. */

import { type JsonValue, isJsonObject } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import { creationError } from '../applied-calls.js';
import type { Call } from '../call.js';
import { DriverError, InstanceFailedError, toDriverError, TransientError } from '../errors.js';
import type { Advance, CreateRequest, Listing, MachineCall, StateMachine } from '../state-machine-api.js';
import { AttemptLookup, ListingDeadline } from '../state-machine/attempt-lookup.js';
import { PendingCall } from '../state-machine/pending-call.js';

type CreateState = 'start' | 'creating' | 'looking-up' | 'waiting' | 'complete';

/** Limits how long a created instance may be missing from listings: at least a minute and three listings. */
const CREATED_DEADLINE = { settleRounds: 3, settleMs: 60_000 };

/** Creates an instance and waits until the cloud lists it as ready. */
export class SimpleCreateMachine implements StateMachine {
  state: CreateState = 'start';
  externalId: ExternalId | undefined;
  private readonly creation = new PendingCall<ExternalId>();
  private readonly lookup: AttemptLookup;
  private readonly listingDeadline = new ListingDeadline(CREATED_DEADLINE);
  /** Failure that requires the attempt lookup; undefined if the machine was resumed from saved state. */
  private doubt: DriverError | undefined;
  private asked = false;

  constructor(
    request: CreateRequest,
    saved: JsonValue,
    private readonly create: (call: Call) => Promise<ExternalId>,
  ) {
    this.lookup = new AttemptLookup(request.tags.nodepool_launch_attempt);
    this.externalId = request.externalId ?? undefined;
    if (this.externalId !== undefined) this.state = 'waiting';
    else if (isJsonObject(saved) && saved.state !== 'start') this.state = 'looking-up';
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'creating';
        return this.creation.start((async () => this.create(call))());
      case 'creating':
        return this.creation.underway ?? this.created(call);
      case 'looking-up':
        return this.lookUp(call);
      case 'waiting':
        return this.wait(call);
      case 'complete':
        return { next: 'complete' };
    }
  }

  save(): JsonValue {
    return { state: this.state };
  }

  private created(call: MachineCall): Advance {
    try {
      this.externalId = this.creation.take();
    } catch (error) {
      const failure = creationError(toDriverError(error), call.signal);
      if (failure.outcome === 'not-applied') throw failure;
      this.doubt = failure;
      this.state = 'looking-up';
      return this.lookUp(call);
    }
    this.state = 'waiting';
    return this.wait(call);
  }

  private lookUp(call: MachineCall): Advance {
    const result = this.lookup.check(call, this.doubt);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') throw this.notCreated();
    this.externalId = result.instance.externalId;
    this.state = 'waiting';
    this.asked = true;
    return this.wait(call);
  }

  private notCreated(): DriverError {
    const { doubt } = this;
    if (doubt === undefined) {
      return new TransientError('the creation that an earlier process started left no instance', {
        outcome: 'not-applied',
      });
    }
    const options = { outcome: 'not-applied', cause: doubt, retryAfterMs: doubt.retryAfterMs } as const;
    return new DriverError(doubt.code, `${doubt.message}; the cloud lists no instance of the attempt`, options);
  }

  private wait(call: MachineCall): Advance {
    const { externalId } = this;
    // A listing from before the creation proves nothing.
    if (externalId === undefined || call.listing === undefined || !this.asked) {
      this.asked = true;
      return { next: 'listing' };
    }
    const instance = call.listing.byExternalId(externalId);
    if (instance === undefined) {
      if (this.listingDeadline.missedIn(call.listing))
        throw new InstanceFailedError(`${named(externalId)} is not in the cloud's list`);
      return { next: 'listing' };
    }
    this.listingDeadline.reset();
    if (instance.failed !== undefined) throw new InstanceFailedError(`${named(externalId)} failed: ${instance.failed}`);
    if (instance.deleted) throw new InstanceFailedError(`${named(externalId)} was deleted while it was being created`);
    if (!instance.ready) return { next: 'listing' };
    this.state = 'complete';
    return { next: 'complete', instance };
  }
}

/**
 * Deletes an instance and confirms the deletion. A listing may lack an instance that exists, so several listings have
 * to agree. If ids are unique, the machine also repeats the deletion, which proves it at once if the cloud does not
 * find the instance; otherwise, the id may belong to another instance by then. The deletion can restart at any time,
 * so the machine saves nothing.
 */
export class SimpleDeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'waiting' | 'asking-again' | 'complete' = 'start';
  private readonly deletion = new PendingCall<void>();
  private readonly listingDeadline = new ListingDeadline();
  private askedAgain = false;

  constructor(
    readonly externalId: ExternalId,
    private readonly uniqueIds: boolean,
    private readonly remove: (call: Call) => Promise<void>,
  ) {}

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        return this.ask('deleting', call);
      case 'deleting':
      case 'asking-again':
        return this.deletion.underway ?? this.deleted();
      case 'waiting':
        return this.wait(call);
      case 'complete':
        return { next: 'complete' };
    }
  }

  save(): null {
    return null;
  }

  private ask(state: 'deleting' | 'asking-again', call: MachineCall): Advance {
    this.state = state;
    return this.deletion.start((async () => this.remove(call))());
  }

  /** Reads the result of the deletion. A `NotFoundError` propagates: the framework treats it as success. */
  private deleted(): Advance {
    this.deletion.take();
    this.state = 'waiting';
    return { next: 'listing' };
  }

  private wait(call: MachineCall): Advance {
    const instance = call.listing?.byExternalId(this.externalId);
    if (call.listing !== undefined && instance === undefined) return this.missing(call.listing, call);
    if (instance?.deleted === true) return this.finish();
    this.listingDeadline.reset();
    return { next: 'listing' };
  }

  private missing(listing: Listing, call: MachineCall): Advance {
    if (this.listingDeadline.missedIn(listing)) return this.finish();
    if (this.askedAgain || !this.uniqueIds) return { next: 'listing' };
    this.askedAgain = true;
    return this.ask('asking-again', call);
  }

  private finish(): Advance {
    this.state = 'complete';
    return { next: 'complete' };
  }
}

function named(externalId: ExternalId): string {
  return `instance ${typeof externalId === 'string' ? externalId : JSON.stringify(externalId)}`;
}
