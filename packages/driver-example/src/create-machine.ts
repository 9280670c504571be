/**
 * State machine that creates an instance.
 *
 *     start ──> creating ──────────────────────> booting ──> ready
 *                   │  outcome unknown              ^
 *                   └─────────────> looking ────────┘
 *                   after a restart    ^
 *                   ───────────────────┘
 *
 * A machine never waits: `advance` checks the progress, starts the next step, and returns the event to wait for. A
 * launcher can therefore run thousands of machines, and another process can resume each from the result of `save`.
 */

import {
  attemptLookup,
  DriverError,
  InstanceFailedError,
  ListingDeadline,
  PendingCall,
  toDriverError,
  type Advance,
  type AttemptLookup,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { ExampleCloudApi } from './client/client.js';
import type { CloudInstance, InstanceSpec } from './cloud/types.js';
import { instanceOf } from './instance.js';

/**
 * Limits how long listings of this cloud may lack an existing instance. An instance that appears even later is leaked
 * and is deleted by the leak cleanup.
 */
const SETTLING = { settleRounds: 2, settleMs: 5000 };

/** The next step needs a listing requested from now on; all machines share it. */
const FRESH_LISTING: Advance = { next: 'listing' };

export class CreateMachine implements StateMachine {
  state: 'start' | 'creating' | 'looking' | 'booting' | 'ready' = 'start';
  externalId: ExternalId | undefined;
  private readonly creation = new PendingCall<CloudInstance>();
  private readonly lookup: AttemptLookup;
  /** Failure that makes the outcome of the creation unknown; undefined if an earlier process started the creation. */
  private doubt: DriverError | undefined;
  private readonly listingDeadline = new ListingDeadline(SETTLING);

  constructor(
    private readonly cloud: ExampleCloudApi,
    private readonly spec: InstanceSpec,
    private readonly options: {
      /** Identity of the attempt, a tag of the instance. */
      readonly attempt: string;
      readonly useInternalIp: boolean;
      /** State saved by an earlier machine, or null. */
      readonly saved: JsonValue;
      /** External id saved by an earlier machine, or null. */
      readonly externalId: ExternalId | null;
    },
  ) {
    this.lookup = attemptLookup(options.attempt, SETTLING);
    // A resumed machine must not create anything before it knows that the earlier call had no effect.
    if (options.externalId !== null) this.found(options.externalId);
    else if (options.saved !== null) this.state = 'looking';
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'creating';
        return this.creation.start(this.cloud.createInstance(this.spec, call));
      case 'creating':
        return this.creation.underway ?? this.afterCreation(call);
      case 'looking':
        return this.look(call);
      case 'booting':
        return this.watch(call);
      case 'ready':
        return { next: 'complete' };
    }
  }

  /** The framework saves the external id. Any saved state means that the creation was started. */
  save(): JsonValue {
    return { state: this.state };
  }

  private afterCreation(call: MachineCall): Advance {
    let instance: CloudInstance;
    try {
      instance = this.creation.take();
    } catch (error) {
      const failure = toDriverError(error);
      // Only an unknown outcome requires a search. The framework handles every other error.
      if (failure.outcome !== 'unknown') throw failure;
      this.doubt = failure;
      this.state = 'looking';
      return this.look(call);
    }
    this.found(instance.id);
    return this.evaluate(instanceOf(instance));
  }

  /** Searches for the instance by the attempt tag that it received at its creation. */
  private look(call: MachineCall): Advance {
    const result = this.lookup.check(call, this.doubt);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') {
      // The call is not repeated here. The launcher starts a new attempt, whose tag distinguishes its instance from a
      // late one of this attempt.
      const reason = this.doubt?.message ?? 'the launcher was restarted during the creation of the instance';
      const options = { cause: this.doubt, outcome: 'not-applied' } as const;
      throw new DriverError(this.doubt?.code ?? 'transient', `${reason}; the cloud has no such instance`, options);
    }
    this.found(result.instance.externalId);
    return this.evaluate(result.instance);
  }

  private found(externalId: ExternalId): void {
    this.externalId = externalId;
    this.state = 'booting';
  }

  /** Reads the instance from the listing that all machines share, instead of one request per machine. */
  private watch({ listing }: MachineCall): Advance {
    const instance = this.externalId === undefined ? undefined : listing?.byExternalId(this.externalId);
    if (instance !== undefined) {
      this.listingDeadline.reset();
      return this.evaluate(instance);
    }
    // A new instance may be missing from listings for a while; one that is missing for longer was deleted.
    if (listing !== undefined && this.listingDeadline.missedIn(listing)) {
      throw new InstanceFailedError('the instance disappeared while it was booting');
    }
    return FRESH_LISTING;
  }

  private evaluate(instance: Instance): Advance {
    if (instance.failed !== undefined) throw new InstanceFailedError(`the instance has failed: ${instance.failed}`);
    if (!instance.ready) return FRESH_LISTING;
    this.state = 'ready';
    if (!this.options.useInternalIp) return { next: 'complete', instance };
    return { next: 'complete', instance: { ...instance, interfaceIp: instance.privateIpv4 } };
  }
}
