/** State machines of the acme driver. */

import {
  attemptLookup,
  DriverError,
  InstanceFailedError,
  ListingDeadline,
  PendingCall,
  toDriverError,
  type Advance,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type ListingDeadlineOptions,
  type StateMachine,
} from '@nodepool/core';
import type { AcmeClient } from './acme-client.js';

export function idOf(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
}

export class AcmeCreate implements StateMachine {
  state = 'start';
  externalId: ExternalId | undefined;
  complete = false;
  private readonly creation = new PendingCall<string>();
  private readonly lookup;
  private readonly listingDeadline: ListingDeadline;

  constructor(
    private readonly client: AcmeClient,
    private readonly request: CreateRequest,
    saved: JsonValue,
    listingDeadline: ListingDeadlineOptions,
  ) {
    this.lookup = attemptLookup(request.tags.nodepool_launch_attempt, listingDeadline);
    this.listingDeadline = new ListingDeadline(listingDeadline);
    this.externalId = request.externalId ?? undefined;
    if (this.externalId !== undefined) this.state = 'booting';
    else if (saved !== null) this.state = 'looking';
  }

  advance(call: MachineCall): Advance {
    if (this.complete) return { next: 'complete' };
    if (this.state === 'start') return this.create(call);
    if (this.state === 'creating') return this.creation.underway ?? this.created(call);
    return this.state === 'looking' ? this.look(call) : this.watch(call);
  }

  save(): JsonValue {
    return { state: this.state };
  }

  private create(call: MachineCall): Advance {
    this.state = 'creating';
    const { tags, label, availabilityZone, imageExternalId, machineType = label.machineTypes?.[0] } = this.request;
    const image = imageExternalId === undefined ? 'debian' : idOf(imageExternalId);
    const zone = availabilityZone ?? 'north';
    return this.creation.start(this.client.create({ ...tags }, zone, image, call, machineType));
  }

  private created(call: MachineCall): Advance {
    try {
      this.externalId = this.creation.take();
    } catch (error) {
      if (toDriverError(error).outcome !== 'unknown') throw error;
      this.state = 'looking';
      return this.look(call);
    }
    this.state = 'booting';
    return { next: 'listing' };
  }

  private look(call: MachineCall): Advance {
    const result = this.lookup.check(call);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') throw new DriverError('transient', 'nothing was made', { outcome: 'not-applied' });
    this.externalId = result.instance.externalId;
    this.state = 'booting';
    return this.watch(call);
  }

  private watch({ listing }: MachineCall): Advance {
    const instance = this.externalId === undefined ? undefined : listing?.byExternalId(this.externalId);
    if (instance?.failed !== undefined) throw new InstanceFailedError(instance.failed);
    if (instance?.ready === true) return this.finish(instance);
    if (listing !== undefined && instance === undefined && this.listingDeadline.missedIn(listing)) {
      throw new InstanceFailedError('the server vanished');
    }
    return { next: 'listing' };
  }

  private finish(instance: Instance): Advance {
    this.complete = true;
    return { next: 'complete', instance };
  }
}

export class AcmeDelete implements StateMachine {
  state = 'start';
  complete = false;
  private readonly deletion = new PendingCall<void>();
  private readonly listingDeadline = new ListingDeadline();

  constructor(
    private readonly client: AcmeClient,
    readonly externalId: ExternalId,
  ) {}

  advance(call: MachineCall): Advance {
    if (this.complete) return { next: 'complete' };
    if (this.deletion.underway !== undefined) return this.deletion.underway;
    if (this.deletion.settled) return this.asked();
    if (this.state === 'leaving') return this.watch(call);
    this.state = 'deleting';
    return this.deletion.start(this.client.remove(idOf(this.externalId), call));
  }

  save(): JsonValue {
    return { state: this.state };
  }

  private watch({ listing }: MachineCall): Advance {
    if (listing?.byExternalId(this.externalId) !== undefined) this.listingDeadline.reset();
    else if (listing !== undefined && this.listingDeadline.missedIn(listing)) this.complete = true;
    return { next: this.complete ? 'complete' : 'listing' };
  }

  private asked(): Advance {
    try {
      this.deletion.take();
    } catch (error) {
      if (toDriverError(error).code !== 'not-found') throw error;
      this.complete = true;
      return { next: 'complete' };
    }
    this.state = 'leaving';
    return { next: 'listing' };
  }
}
