/**
 * State machine that creates an instance.
 *
 *     start ──> preparing ──┬──────────────────────────────> launching ──> booting ──> ready
 *                           └> allocating ──> host-pending ──┘  │ unknown     ^
 *                                                               └─> looking ──┘
 *                                           after a restart ──────────^
 *
 * The instance has the launch attempt in its tags from its creation, so lists find it after a call without an answer.
 * With a dedicated host, the machine first allocates the host, which has the same tags.
 */

import {
  attemptLookup,
  ConfigurationError,
  DriverError,
  driverError,
  InstanceFailedError,
  isJsonObject,
  ListingDeadline,
  NotFoundError,
  PendingCall,
  stringAt,
  toDriverError,
  withOutcome,
  type Advance,
  type AttemptLookup,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { Image } from '@aws-sdk/client-ec2';
import { toTags } from './client/ec2.js';
import type { AwsLabel, ImageSource } from './config.js';
import { codeOfReason, errorOfCode } from './errors.js';
import { hostTokenOf, nodeTags, type LaunchedNode, type Tags } from './identity.js';
import { isHostId } from './instance.js';
import { launchSpec, type LaunchPlace } from './launch-spec.js';
import { imageError } from './lookups.js';
import { choiceOf } from './offers.js';
import type { ProviderSession } from './session.js';
import { asTagValue } from './tag-limits.js';

/** Time for which lists of EC2 can lack a new instance. */
const SETTLING = { settleRounds: 3, settleMs: 30_000 } as const;
const FRESH_LISTING: Advance = { next: 'listing' };

type State = 'start' | 'preparing' | 'allocating' | 'host-pending' | 'launching' | 'looking' | 'booting' | 'ready';

export class CreateMachine implements StateMachine {
  state: State = 'start';
  externalId: ExternalId | undefined;
  private readonly preparation = new PendingCall<LaunchPlace & { readonly subnetIds: readonly string[] }>();
  private readonly allocation = new PendingCall<string>();
  private readonly creation = new PendingCall<string>();
  private readonly lookup: AttemptLookup;
  private readonly listingDeadline = new ListingDeadline(SETTLING);
  private readonly hostDeadline = new ListingDeadline(SETTLING);
  private place: (LaunchPlace & { readonly subnetIds: readonly string[] }) | undefined;
  private hostId: string | undefined;
  /** Failure that makes the outcome of the launch unknown; undefined if an earlier process began it. */
  private doubt: DriverError | undefined;

  constructor(
    private readonly session: ProviderSession,
    private readonly request: CreateRequest<AwsLabel>,
    saved: JsonValue,
  ) {
    const { externalId, tags } = request;
    this.lookup = attemptLookup(tags.nodepool_launch_attempt, SETTLING);
    if (isJsonObject(saved)) this.hostId = stringAt(saved, 'host');
    if (externalId !== null && !isHostId(externalId)) this.found(externalId);
    else if (externalId !== null || saved !== null) this.state = 'looking';
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'preparing';
        return this.preparation.start(this.prepare());
      case 'preparing':
        return this.preparation.underway ?? this.afterPreparation(call);
      case 'allocating':
        return this.allocation.underway ?? this.afterAllocation();
      case 'host-pending':
        return this.watchHost(call);
      case 'launching':
        return this.creation.underway ?? this.afterLaunch(call);
      case 'looking':
        return this.look(call);
      case 'booting':
        return this.watch(call);
      case 'ready':
        return { next: 'complete' };
    }
  }

  /** Any saved state means that a call may have been sent. Lists show the launch attempt of each instance. */
  save(): JsonValue {
    return { state: this.state, ...(this.hostId === undefined ? {} : { host: this.hostId }) };
  }

  private get node(): LaunchedNode {
    return { hostname: this.request.hostname, tags: this.request.tags };
  }

  private get ownTags(): Tags {
    const { label, request } = this.request;
    const dynamic = [...label.dynamicTags].map(([name, template]) => [name, asTagValue(template.render(request))]);
    return { ...label.tags, ...(Object.fromEntries(dynamic) as Tags) };
  }

  /** Resolves the image and the subnet before anything is created. */
  private async prepare(): Promise<LaunchPlace & { readonly subnetIds: readonly string[] }> {
    const { label, machineType, availabilityZone: zone = label.network.zone } = this.request;
    const { lookups } = this.session;
    const [image, subnetIds] = await Promise.all([this.image(), lookups.subnetsIn(label.network, zone)]);
    const choice = choiceOf(label, machineType);
    return { choice, image, zone, subnetIds, subnetId: subnetIds[0], hostId: undefined };
  }

  private async image(): Promise<Image> {
    const source = this.imageSource;
    try {
      return await this.session.lookups.image(source);
    } catch (error) {
      throw imageError(toDriverError(error), this.request.label.name, this.request.label.imageSource);
    }
  }

  private get imageSource(): Exclude<ImageSource, { kind: 'uploaded' }> {
    const { label, imageExternalId } = this.request;
    if (label.imageSource.kind !== 'uploaded') return label.imageSource;
    if (typeof imageExternalId === 'string') return { kind: 'id', id: imageExternalId };
    throw new NotFoundError(`disk image ${label.image.name} has no upload that EC2 could use`);
  }

  private afterPreparation(call: MachineCall): Advance {
    this.place = this.preparation.take();
    if (!this.request.label.dedicatedHost) return this.launch(this.place, call);
    this.state = 'allocating';
    return this.allocation.start(this.allocate(this.place, call));
  }

  private async allocate({ choice, zone }: LaunchPlace, call: Call): Promise<string> {
    const { ec2 } = this.session;
    const id = await ec2.allocateHost(
      {
        InstanceType: choice.instanceType,
        AvailabilityZone: zone,
        Quantity: 1,
        AutoPlacement: 'off',
        ClientToken: hostTokenOf(this.request.tags),
        TagSpecifications: [
          { ResourceType: 'dedicated-host', Tags: toTags({ ...this.ownTags, ...nodeTags(this.node) }) },
        ],
      },
      call,
    );
    if (id !== undefined) return id;
    throw new InstanceFailedError('EC2 accepted the allocation of a host, but returned no id');
  }

  private afterAllocation(): Advance {
    this.hostId = this.allocation.take();
    // The framework saves the id, so that the deletion of the node releases the host.
    this.externalId = this.hostId;
    this.state = 'host-pending';
    return FRESH_LISTING;
  }

  private watchHost(call: MachineCall): Advance {
    const { listing } = call;
    const { hostId, place } = this;
    if (listing === undefined || hostId === undefined || place === undefined) return FRESH_LISTING;
    const host = listing.byExternalId(hostId);
    if (host?.deleted === true || (host === undefined && this.hostDeadline.missedIn(listing))) {
      throw new InstanceFailedError(`dedicated host ${hostId} disappeared`);
    }
    if (host?.ready !== true) return FRESH_LISTING;
    return this.launch({ ...place, hostId }, call);
  }

  private launch(place: LaunchPlace & { readonly subnetIds: readonly string[] }, call: Call): Advance {
    const { label } = this.request;
    const { launches, fleets } = this.session;
    const tags = this.ownTags;
    this.state = 'launching';
    if (label.fleet !== undefined) {
      const { image, subnetIds } = place;
      return this.creation.start(fleets.launch({ label, image, subnetIds, tags, node: this.node }, call));
    }
    const shared = { spec: launchSpec(label, place), tags, label: label.name };
    return this.creation.start(
      launches.join(shared, this.node, call).then(({ InstanceId }) => {
        if (InstanceId !== undefined) return InstanceId;
        throw new DriverError('unexpected', 'EC2 returned an instance without an id', { outcome: 'unknown' });
      }),
    );
  }

  private afterLaunch(call: MachineCall): Advance {
    let id: string;
    try {
      id = this.creation.take();
    } catch (error) {
      const failure = imageError(toDriverError(error), this.request.label.name, this.request.label.imageSource);
      if (failure.outcome !== 'unknown') throw this.refused(failure);
      this.doubt = failure;
      this.state = 'looking';
      return this.look(call);
    }
    this.found(id);
    return FRESH_LISTING;
  }

  /** Returns the error of a launch that had no effect. A host that was allocated for it exists. */
  private refused(failure: DriverError): DriverError {
    if (failure.code === 'not-found' || failure.code === 'configuration') this.session.lookups.forget(this.imageSource);
    return this.hostId === undefined ? failure : withOutcome(failure, 'applied');
  }

  /** Searches for the instance by the launch attempt in its tags. */
  private look(call: MachineCall): Advance {
    const result = this.lookup.check(call, this.doubt);
    if (result.found === 'unknown') return result.advance;
    const reason = this.doubt?.message ?? 'the launcher was restarted during the creation of the instance';
    const code = this.doubt?.code ?? 'transient';
    if (result.found === 'nothing') {
      throw new DriverError(code, `${reason}; EC2 has no such instance`, {
        cause: this.doubt,
        outcome: 'not-applied',
      });
    }
    const { instance } = result;
    if (isHostId(instance.externalId)) {
      // A host without an instance is of no use; the deletion of the node releases it.
      this.externalId = instance.externalId;
      throw new DriverError(code, `${reason}; its dedicated host has no instance`, {
        cause: this.doubt,
        outcome: 'applied',
      });
    }
    this.found(instance.externalId);
    return this.evaluate(instance);
  }

  private found(externalId: ExternalId): void {
    this.externalId = externalId;
    this.state = 'booting';
  }

  private watch({ listing }: MachineCall): Advance {
    const instance = this.externalId === undefined ? undefined : listing?.byExternalId(this.externalId);
    if (instance !== undefined) {
      this.listingDeadline.reset();
      return this.evaluate(instance);
    }
    if (listing !== undefined && this.listingDeadline.missedIn(listing)) {
      throw new InstanceFailedError('the instance disappeared while it was booting');
    }
    return FRESH_LISTING;
  }

  private evaluate(instance: Instance): Advance {
    if (instance.failed !== undefined) throw failureOf(instance.failed);
    const { network } = this.request.label;
    const lacksAddress = network.publicIpv4 && !network.useInternalIp && instance.publicIpv4 === undefined;
    if (!instance.ready || lacksAddress || instance.interfaceIp === undefined) return FRESH_LISTING;
    this.state = 'ready';
    const { hostname } = this.request;
    if (instance.hostname !== hostname && typeof instance.externalId === 'string') {
      this.session.names.add(instance.externalId, hostname);
    }
    return { next: 'complete', instance: { ...instance, hostname } };
  }
}

/** Returns the error of an instance that ended instead of running. EC2 reports some limits this way only. */
function failureOf(failed: string): DriverError {
  const reason = /^[\w.]+/.exec(failed)?.[0] ?? '';
  const code = codeOfReason(reason);
  const message = `the instance has failed: ${failed}`;
  if (code !== undefined) return driverError(code, message, { outcome: 'applied' });
  if (/^Client\.(InvalidKMSKey|InvalidKmsKey)/.test(reason)) {
    const { message: said } = errorOfCode('instance', reason.replace('Client.', ''), failed);
    return new ConfigurationError(said, { outcome: 'applied' });
  }
  // AWS does not say more if the account may not use the key of an encrypted volume.
  const hint = reason === 'Client.InternalError' ? '; may this account use the KMS key of the volumes?' : '';
  return new InstanceFailedError(message + hint);
}
