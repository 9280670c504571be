/**
 * How an instance is made.
 *
 *     start ──> creating ──────────────────────> booting ──> ready
 *                   │  outcome unknown              ^
 *                   └─────────────> looking ────────┘
 *                   after a restart    ^
 *                   ───────────────────┘
 *
 * A state machine never waits: `advance` looks how far things are, starts what comes next, and says what would be worth
 * being woken for. That is why a launcher can have thousands of them. It is also why it can be killed at any moment:
 * what `save` gives is enough for another process to go on.
 */

import {
  attemptLookup,
  DriverError,
  InstanceFailedError,
  ListingPatience,
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
import type { ExampleCloudApi } from './client.js';
import type { CloudInstance, InstanceSpec } from './cloud/types.js';
import { instanceOf } from './instance.js';

/**
 * How long listings of this cloud may lack what exists. An instance that they still lack after that does not; should it
 * turn up even later, it is leaked, and is cleaned up as such.
 */
const SETTLING = { settleRounds: 2, settleMs: 5000 };

/** The next step needs a listing that is asked for from now on; the framework makes one for all machines. */
const FRESH_LISTING: Advance = { next: 'listing' };

export class CreateMachine implements StateMachine {
  state: 'start' | 'creating' | 'looking' | 'booting' | 'ready' = 'start';
  externalId: ExternalId | undefined;
  private readonly creation = new PendingCall<CloudInstance>();
  private readonly lookup: AttemptLookup;
  /** Why it is not known whether the creation took effect; undefined: it was begun by a process that is no more. */
  private doubt: DriverError | undefined;
  private readonly patience = new ListingPatience(SETTLING);

  constructor(
    private readonly cloud: ExampleCloudApi,
    private readonly spec: InstanceSpec,
    private readonly options: {
      /** Identity of the attempt, a tag of the instance. */
      readonly attempt: string;
      readonly useInternalIp: boolean;
      /** What an earlier machine saved, or null. */
      readonly saved: JsonValue;
      /** What an earlier machine had made, or null. */
      readonly externalId: ExternalId | null;
    },
  ) {
    this.lookup = attemptLookup(options.attempt, SETTLING);
    // A restored machine must not create anything before it knows that the call of its predecessor had no effect.
    if (options.externalId !== null) this.found(options.externalId);
    else if (options.saved !== null) this.state = 'looking';
  }

  get complete(): boolean {
    return this.state === 'ready';
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

  /** The external id is kept by the framework; that there is a saved machine at all says that the creation was begun. */
  save(): JsonValue {
    return { state: this.state };
  }

  private afterCreation(call: MachineCall): Advance {
    let instance: CloudInstance;
    try {
      instance = this.creation.take();
    } catch (error) {
      const failure = toDriverError(error);
      // Only an unknown outcome is worth looking at. Everything else is for the framework: it knows what each error means.
      if (failure.outcome !== 'unknown') throw failure;
      this.doubt = failure;
      this.state = 'looking';
      return this.look(call);
    }
    this.found(instance.id);
    return this.judge(instanceOf(instance));
  }

  /** Looks for the instance by the tag that it got at its creation; that is what the attempt's id is for. */
  private look(call: MachineCall): Advance {
    const result = this.lookup.check(call, this.doubt);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') {
      // Not repeated here: the launcher makes a new attempt, whose instance cannot be mistaken for a late one of this.
      const reason = this.doubt?.message ?? 'the launcher was restarted while the instance was made';
      const options = { cause: this.doubt, outcome: 'not-applied' } as const;
      throw new DriverError(this.doubt?.code ?? 'transient', `${reason}; the cloud has no such instance`, options);
    }
    this.found(result.instance.externalId);
    return this.judge(result.instance);
  }

  private found(externalId: ExternalId): void {
    this.externalId = externalId;
    this.state = 'booting';
  }

  /** Reads the instance from the listing that all machines share, instead of asking for each by itself. */
  private watch({ listing }: MachineCall): Advance {
    const instance = this.externalId === undefined ? undefined : listing?.byExternalId(this.externalId);
    if (instance !== undefined) {
      this.patience.reset();
      return this.judge(instance);
    }
    // A new instance may be missing from listings for a while; one that is missing for longer was taken away.
    if (listing !== undefined && this.patience.missedIn(listing)) {
      throw new InstanceFailedError('the instance disappeared while it was booting');
    }
    return FRESH_LISTING;
  }

  private judge(instance: Instance): Advance {
    if (instance.failed !== undefined) throw new InstanceFailedError(`the instance has failed: ${instance.failed}`);
    if (!instance.ready) return FRESH_LISTING;
    this.state = 'ready';
    if (!this.options.useInternalIp) return { next: 'complete', instance };
    return { next: 'complete', instance: { ...instance, interfaceIp: instance.privateIpv4 } };
  }
}
