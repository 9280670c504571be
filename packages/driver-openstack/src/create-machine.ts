/**
 * State machine that creates a server for a node.
 *
 *     start ──> preparing ──> creating ─────────────> booting ──> tagging ──> attaching ──> ready
 *                   ^            │  │ outcome unknown    ^       (volume)   (floating IP)
 *                   └─ refused ──┘  └────> looking ──────┘
 *                      a found name
 *
 * The machine retries calls that failed without effect, with back-off, so that a restart of the control plane does not
 * fail the launch attempt. If a creation may have had an effect, the machine searches for a server with the attempt's
 * tag and never repeats the creation.
 */

import {
  attemptLookup,
  DriverError,
  InstanceFailedError,
  ListingDeadline,
  NotFoundError,
  PendingCall,
  StepRetries,
  toDriverError,
  type Advance,
  type AttemptLookup,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type ListingDeadlineOptions,
  type StateMachine,
} from '@nodepool/core';
import type { Server } from './client/server.js';
import { flavorOf, type OpenStackLabel } from './config.js';
import { faultError, InvalidResourceError } from './errors.js';
import { FloatingIpAttachment } from './floating-ip.js';
import { serverOf } from './instance.js';
import { volumeUse } from './quota.js';
import { serverSpec, type Found } from './server-spec.js';
import { VOLUME_ID } from './tags.js';
import type { ProviderSession } from './provider-session.js';

/** Search after a lost answer: the server exists, or will exist soon. */
const SETTLING_AFTER_CUT: ListingDeadlineOptions = { settleRounds: 3, settleMs: 15_000 };
/** Search after an aborted call, which a cloud under load may still be processing. */
const SETTLING_AFTER_TIMEOUT: ListingDeadlineOptions = { settleRounds: 3, settleMs: 60_000 };

/** Time that a server may be in ERROR without a fault message. */
const UNEXPLAINED: ListingDeadlineOptions = { settleRounds: 3, settleMs: 5000 };

const FRESH_LISTING: Advance = { next: 'listing' };

type State =
  'start' | 'preparing' | 'creating' | 'looking' | 'booting' | 'explaining' | 'tagging' | 'attaching' | 'ready';

export class CreateMachine implements StateMachine {
  state: State = 'start';
  externalId: ExternalId | undefined;
  private readonly resumed: boolean;
  private readonly preparation = new PendingCall<Found>();
  private readonly creation = new PendingCall<string>();
  private readonly tagging = new PendingCall<boolean>();
  private lookup: AttemptLookup | undefined;
  /** Why the outcome of the creation is unknown; undefined if a former process started it. */
  private doubt: DriverError | undefined;
  private readonly listingDeadline = new ListingDeadline(SETTLING_AFTER_CUT);
  private readonly explanation = new PendingCall<Server>();
  private readonly unexplained = new ListingDeadline(UNEXPLAINED);
  private attachment: FloatingIpAttachment | undefined;
  private instance: Instance | undefined;
  /** True if names were looked up again after the cloud had refused the creation. */
  private lookedUpAgain = false;
  private readonly retries: StepRetries;

  constructor(
    private readonly session: ProviderSession,
    private readonly request: CreateRequest<OpenStackLabel>,
    saved: JsonValue,
  ) {
    this.retries = new StepRetries(session.clock, session.random);
    this.resumed = request.externalId !== null || saved !== null;
    // A restored machine must not create a server before it knows that the earlier call had no effect.
    if (request.externalId !== null) this.found(request.externalId);
    else if (this.resumed) this.state = 'looking';
  }

  advance(call: MachineCall): Advance {
    try {
      return this.retries.stepped(this.step(call));
    } catch (error) {
      return this.recover(toDriverError(error), call);
    }
  }

  /** Returns an empty state: the framework stores the external id; a saved machine implies a started creation. */
  save(): JsonValue {
    return { state: this.state };
  }

  private step(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'preparing';
        return this.preparation.start(this.prepare());
      case 'preparing':
        return this.preparation.underway ?? this.create(call);
      case 'creating':
        return this.creation.underway ?? this.afterCreation(call);
      case 'looking':
        return this.look(call);
      case 'booting':
        return this.watch(call);
      case 'explaining':
        return this.explanation.underway ?? this.afterExplanation(call);
      case 'tagging':
        return this.tagging.underway ?? this.afterTagging(call);
      case 'attaching':
        return this.attach(call);
      case 'ready':
        return { next: 'complete' };
    }
  }

  /** Retries temporary failures that had no effect. */
  private recover(error: DriverError, call: MachineCall): Advance {
    if (error instanceof InvalidResourceError && this.refusalMayBeStale(error)) {
      this.lookedUpAgain = true;
      this.session.lookups.forget();
      this.state = 'start';
      return { next: 'delay', ms: 1 };
    }
    const harmless =
      this.state !== 'looking' &&
      (this.externalId !== undefined || this.state === 'preparing' || error.outcome === 'not-applied');
    const { state, externalId } = this;
    const place = { state, mayExist: externalId !== undefined };
    const retry = harmless ? this.retries.after(error, place, call) : undefined;
    if (retry === undefined) throw error;
    if (this.externalId === undefined) this.state = 'start';
    return retry;
  }

  /** Returns true if an image, flavor or network may have been replaced by a new one with the same name. */
  private refusalMayBeStale({ subject }: InvalidResourceError): boolean {
    const { cloudImage, networks } = this.request.label;
    if (this.lookedUpAgain || this.externalId !== undefined) return false;
    if (subject === 'image') return cloudImage !== undefined && 'name' in cloudImage;
    return subject === 'flavor' || (subject === 'network' && networks.length > 0);
  }

  private async prepare(): Promise<Found> {
    const { label, imageExternalId, machineType } = this.request;
    const { lookups } = this.session;
    const [flavor, imageId, networkIds] = await Promise.all([
      lookups.flavor(flavorOf(label, machineType)),
      label.cloudImage === undefined
        ? uploadedImage(imageExternalId, label.image.name)
        : lookups.cloudImage(label.cloudImage),
      lookups.networkIds(label.networks),
    ]);
    return { flavorId: flavor.id, imageId, networkIds };
  }

  private create(call: MachineCall): Advance {
    const spec = serverSpec(this.request, this.session.config.name, this.preparation.take());
    this.state = 'creating';
    return this.creation.start(this.session.client.compute.createServer(spec, call));
  }

  private afterCreation(call: MachineCall): Advance {
    let serverId: string;
    try {
      serverId = this.creation.take();
    } catch (error) {
      const failure = toDriverError(error);
      if (failure.outcome !== 'unknown') throw this.explained(failure);
      this.doubt = failure;
      this.state = 'looking';
      return this.look(call);
    }
    this.found(serverId);
    return FRESH_LISTING;
  }

  /** Replaces the error if an uploaded image was deleted: a new upload corrects it, no configuration change does. */
  private explained(failure: DriverError): DriverError {
    const uploaded = this.request.label.cloudImage === undefined;
    if (!(failure instanceof InvalidResourceError) || failure.subject !== 'image' || !uploaded) return failure;
    return new NotFoundError(failure.message, { cause: failure });
  }

  /** Searches for the server by the attempt id in its tags. */
  private look(call: MachineCall): Advance {
    const patient = this.doubt === undefined || this.doubt.code === 'timeout' || this.doubt.code === 'aborted';
    this.lookup ??= attemptLookup(
      this.request.tags.nodepool_launch_attempt,
      patient ? SETTLING_AFTER_TIMEOUT : SETTLING_AFTER_CUT,
    );
    const result = this.lookup.check(call, this.doubt);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') {
      // Not retried here: the launcher starts a new attempt, whose tags differ from those of a server that appears
      // late.
      const reason = this.doubt?.message ?? 'the launcher was restarted while the server was made';
      const options = { cause: this.doubt, outcome: 'not-applied' } as const;
      throw new DriverError(this.doubt?.code ?? 'transient', `${reason}; the cloud has no such server`, options);
    }
    this.found(result.instance.externalId);
    return this.evaluate(result.instance, call);
  }

  private found(externalId: ExternalId): void {
    this.externalId = externalId;
    this.state = 'booting';
  }

  /** Reads the server from the listing that all machines share, instead of querying it individually. */
  private watch(call: MachineCall): Advance {
    const { listing } = call;
    const instance = this.externalId === undefined ? undefined : listing?.byExternalId(this.externalId);
    if (instance !== undefined) {
      this.listingDeadline.reset();
      return this.evaluate(instance, call);
    }
    // A new server may be missing from listings at first. One that stays missing has been deleted in the cloud.
    if (listing !== undefined && this.listingDeadline.missedIn(listing)) {
      throw new InstanceFailedError('the server disappeared while it was booting');
    }
    return FRESH_LISTING;
  }

  private evaluate(instance: Instance, call: MachineCall): Advance {
    const server = serverOf(instance);
    if (server === undefined) return FRESH_LISTING;
    if (server.status === 'ERROR') return this.explain(server, call);
    if (instance.failed !== undefined) throw new InstanceFailedError(`server ${server.id}: ${instance.failed}`);
    if (!instance.ready) return FRESH_LISTING;
    this.instance = instance;
    this.state = 'tagging';
    return this.tagging.start(this.tagVolumes(server, call));
  }

  /**
   * Reads the fault of the server. Listings lack the faults of servers that were never placed on a host (nova keeps
   * those in a separate cell).
   */
  private explain(server: Server, call: MachineCall): Advance {
    if (server.fault !== undefined) throw faultError(server.id, server.fault);
    this.state = 'explaining';
    return this.explanation.start(this.session.client.compute.getServer(server.id, call));
  }

  /** Repeats the query if there is no fault yet: the cloud writes the status before the fault. */
  private afterExplanation({ listing }: MachineCall): Advance {
    this.state = 'booting';
    const { id, fault } = this.explanation.take();
    if (fault !== undefined) throw faultError(id, fault);
    if (listing === undefined || !this.unexplained.missedIn(listing)) return FRESH_LISTING;
    throw faultError(id, 'the cloud gives no reason');
  }

  /** Tags the server's volumes, which the cloud creates without tags. Resolves with true if a floating IP is needed. */
  private async tagVolumes(server: Server, call: MachineCall): Promise<boolean> {
    const { label, tags } = this.request;
    if (label.volumeSize !== undefined) {
      await Promise.all(server.volumes.map((id) => this.tagVolume(id, { ...tags, [VOLUME_ID]: id }, call)));
    }
    return label.autoFloatingIp && !label.useInternalIp && (await FloatingIpAttachment.neededBy(server, this.session));
  }

  /** Tags a volume and tolerates a refusal: an untagged volume is deleted with its server, or leaks without owner. */
  private async tagVolume(id: string, tags: Readonly<Record<string, string>>, call: MachineCall): Promise<void> {
    try {
      await this.session.client.volume.tagVolume(id, tags, call);
    } catch (error) {
      const { code } = toDriverError(error);
      if (code !== 'auth' && code !== 'not-found') throw error;
      call.log.warn('The volume of a server could not be tagged', { volume: id, error });
    }
  }

  private afterTagging(call: MachineCall): Advance {
    let floatingIpNeeded: boolean;
    try {
      floatingIpNeeded = this.tagging.take();
    } catch (error) {
      this.state = 'booting';
      throw error;
    }
    if (!floatingIpNeeded) return this.finish();
    this.state = 'attaching';
    return this.attach(call);
  }

  private attach(call: MachineCall): Advance {
    const { session, resumed } = this;
    const { tags } = this.request;
    if (typeof this.externalId !== 'string') throw new NotFoundError('the server has no id');
    this.attachment ??= new FloatingIpAttachment({ session, serverId: this.externalId, tags, resumed });
    const next = this.attachment.advance(call);
    return next ?? this.finish();
  }

  private finish(): Advance {
    const { instance } = this;
    if (instance === undefined) throw new DriverError('unexpected', 'a launch ended without a server');
    const { useInternalIp, volumeSize } = this.request.label;
    const floatingIp = this.attachment?.address;
    const interfaceIp = (useInternalIp ? instance.privateIpv4 : undefined) ?? floatingIp ?? instance.interfaceIp;
    // The list of servers does not contain the sizes of their volumes.
    const resources = { ...instance.resources, ...volumeUse(volumeSize) };
    this.state = 'ready';
    return {
      next: 'complete',
      instance: { ...instance, publicIpv4: floatingIp ?? instance.publicIpv4, interfaceIp, resources },
    };
  }
}

/** Returns the image id of the upload. The launcher does not launch labels without an upload. */
async function uploadedImage(externalId: ExternalId | undefined, image: string): Promise<string> {
  if (typeof externalId === 'string') return externalId;
  throw new NotFoundError(`disk image ${image} has no upload that an OpenStack cloud could use`);
}
