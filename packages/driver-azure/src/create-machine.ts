/**
 * State machine that creates a VM for a node with one PUT, which also describes its interface, disk and addresses.
 *
 *     start ──> preparing ──> creating ──> following ──> reading ──> ready
 *                              ^  │            │            ^  │
 *                    repeating ┴──│ unknown    │ forgotten  │  │ not yet
 *                                 └────────────┴─> looking ─┴──┘
 *
 * The VM's name contains the launch attempt, so the machine reads the VM by name and not from lists, which may be
 * stale. A creation with an unknown outcome is repeated once with the same body: the name makes it the same VM, and
 * Azure accepts an identical PUT of an existing VM. If the VM appears later still, its tags identify it as leaked.
 */

import {
  DriverError,
  InstanceFailedError,
  isDriverError,
  isJsonObject,
  NotFoundError,
  PendingCall,
  StepRetries,
  stringAt,
  toDriverError,
  withOutcome,
  type Advance,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { Accepted, Progress } from './client/arm.js';
import type { ImageReference, VirtualMachine } from './client/types.js';
import type { AzureLabel } from './config.js';
import { vmNameOf, nameIn } from './identity.js';
import { addressesOf, failureIn, instanceOf } from './instance.js';
import { vmSpec } from './vm-spec.js';
import type { ProviderSession } from './provider-session.js';

/** Interval between queries for a VM that is not ready (ms). */
const POLL_INTERVAL_MS = 5000;
/** Time before a creation with an unknown outcome is repeated (ms). */
const REPEAT_MS = 1000;
/** Time for which Azure may not know a VM yet after its creation was requested (ms). */
const SETTLE_MS = 30_000;

type State = 'start' | 'preparing' | 'creating' | 'repeating' | 'following' | 'looking' | 'reading' | 'ready';

type Found = { readonly vm: 'none' | 'unready' } | { readonly vm: 'ready'; readonly instance: Instance };

export class CreateMachine implements StateMachine {
  state: State = 'start';
  externalId: ExternalId | undefined;
  private readonly name: string;
  /** True if the VM did not appear within the settling time. */
  private absent = false;
  private readonly preparation = new PendingCall<ImageReference>();
  private readonly creation = new PendingCall<Accepted>();
  private readonly following = new PendingCall<Progress>();
  private readonly reading = new PendingCall<Found>();
  private operationUrl: string | undefined;
  /** Body of the creation, which contains a random password and must be the same if the creation is repeated. */
  private spec: VirtualMachine | undefined;
  /** Why the outcome of the creation is unknown. */
  private doubt: DriverError | undefined;
  private missingSince: number | undefined;
  private readonly retries: StepRetries;

  constructor(
    private readonly session: ProviderSession,
    private readonly request: CreateRequest<AzureLabel>,
    saved: JsonValue,
  ) {
    const { externalId } = request;
    // Another program, e.g. the Python Nodepool, may have named the VM of a recorded launch.
    this.name = typeof externalId === 'string' ? externalId : vmNameOf(request.hostname, request.tags);
    this.retries = new StepRetries(session.clock, session.random);
    if (externalId === null && saved === null) return;
    // A restored machine never creates a VM, because its predecessor may have done so.
    if (externalId !== null) this.externalId = this.name;
    this.operationUrl = isJsonObject(saved) ? stringAt(saved, 'operation') : undefined;
    this.state = this.operationUrl === undefined ? 'looking' : 'following';
  }

  advance(call: MachineCall): Advance {
    try {
      return this.retries.stepped(this.step(call));
    } catch (error) {
      return this.recover(toDriverError(error), call);
    }
  }

  save(): JsonValue {
    return { state: this.state, ...(this.operationUrl === undefined ? {} : { operation: this.operationUrl }) };
  }

  private step(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'preparing';
        return this.preparation.start(this.imageReference());
      case 'preparing':
        return this.preparation.underway ?? this.create(call);
      case 'creating':
        return this.creation.underway ?? this.afterCreation(call);
      case 'repeating':
        this.state = 'creating';
        return this.creation.start(this.session.client.createVm(this.name, this.spec ?? {}, call));
      case 'following':
        return this.following.underway ?? this.follow(call);
      case 'looking':
        this.state = 'reading';
        return this.reading.start(this.read(call));
      case 'reading':
        return this.reading.underway ?? this.afterReading(call);
      case 'ready':
        return { next: 'complete' };
    }
  }

  /** Retries temporary failures that had no effect. */
  private recover(error: DriverError, call: MachineCall): Advance {
    // Once the VM may exist, only reads follow, unless the creation is known to have failed.
    const { state, absent } = this;
    const mayExist = state !== 'preparing' && state !== 'creating';
    const harmless = mayExist ? error.outcome !== 'applied' : error.outcome === 'not-applied';
    const retry = harmless && !absent ? this.retries.after(error, { state, mayExist }, call) : undefined;
    if (retry === undefined) throw mayExist && harmless && !absent ? withOutcome(error, 'unknown') : error;
    if (!mayExist) this.state = 'start';
    else if (this.state === 'reading') this.state = 'looking';
    return retry;
  }

  private async imageReference(): Promise<ImageReference> {
    const { label, imageExternalId, machineType = label.vmSize } = this.request;
    const { imageSource } = label;
    // Sizes that the location does not have are reported before anything is created.
    await this.session.lookups.size(machineType);
    if (imageSource.kind === 'reference') return { ...imageSource.reference };
    if (imageSource.kind === 'filter') return { id: await this.session.lookups.image(imageSource.filter) };
    if (typeof imageExternalId === 'string') return { id: this.session.computeId('images', imageExternalId) };
    throw new NotFoundError(`disk image ${label.image.name} has no upload that Azure could use`);
  }

  private create(call: MachineCall): Advance {
    const { config, subnetId, random, client } = this.session;
    const image = this.preparation.take();
    const { location, resourceGroup } = config;
    const environment = { location, resourceGroup, subnetId, image, random };
    const spec = vmSpec(this.name, this.request, environment);
    this.spec = spec;
    this.state = 'creating';
    return this.creation.start(client.createVm(this.name, spec, call));
  }

  private afterCreation(call: MachineCall): Advance {
    let accepted: Accepted;
    try {
      accepted = this.creation.take();
    } catch (error) {
      const failure = toDriverError(error);
      if (this.doubt === undefined) {
        if (failure.outcome !== 'unknown') throw this.refused(failure);
        this.doubt = failure;
        this.state = 'repeating';
        return { next: 'delay', ms: failure.retryAfterMs ?? REPEAT_MS };
      }
      call.log.info('Searching the cloud for the VM of a launch attempt whose outcome is unknown', {
        external_id: this.name,
        reason: failure.message,
      });
      this.state = 'looking';
      return this.step(call);
    }
    this.doubt = undefined;
    this.externalId = this.name;
    this.operationUrl = accepted.url;
    this.state = accepted.url === undefined ? 'looking' : 'following';
    return { next: 'delay', ms: accepted.retryAfterMs };
  }

  /** Discards the cached images if the chosen one may have been deleted, so that the next launch chooses another. */
  private refused(failure: DriverError): DriverError {
    const mayLackImage = failure.code === 'not-found' || failure.code === 'configuration';
    if (mayLackImage && this.request.label.imageSource.kind === 'filter') this.session.lookups.images.forget();
    return failure;
  }

  /** Polls the operation at the interval that Azure specifies. */
  private follow(call: MachineCall): Advance {
    const url = this.operationUrl;
    if (url === undefined || !this.following.settled)
      return this.following.start(this.session.client.progress(`VM ${this.name}`, url ?? '', call));
    let progress: Progress;
    try {
      progress = this.following.take();
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      // Azure deletes operations after a while; the VM itself shows the outcome.
      this.operationUrl = undefined;
      progress = { status: 'succeeded', result: undefined };
    }
    if (progress.status === 'failed') throw progress.error;
    if (progress.status === 'running') return { next: 'delay', ms: progress.retryAfterMs };
    this.state = 'looking';
    return this.step(call);
  }

  /** Reads the VM by name, and its addresses if it is ready. */
  private async read(call: Call): Promise<Found> {
    const { client, lookups } = this.session;
    let vm: VirtualMachine;
    try {
      vm = await client.getVm(this.name, call);
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return { vm: 'none' };
      throw error;
    }
    const { provisioningState, networkProfile } = vm.properties ?? {};
    if (provisioningState === 'Failed') throw await this.failure(call);
    if (provisioningState === 'Deleting') throw new InstanceFailedError(`VM ${this.name} is being deleted`);
    if (provisioningState !== 'Succeeded') return { vm: 'unready' };
    const interfaces = networkProfile?.networkInterfaces ?? [];
    const nicName = nameIn(interfaces.find(({ properties }) => properties?.primary === true)?.id ?? interfaces[0]?.id);
    if (nicName === undefined) throw new InstanceFailedError(`VM ${this.name} has no network interface`);
    const addresses = addressesOf(await client.getNic(nicName, call), this.request.label.addresses.useInternalIp);
    if (addresses === undefined) return { vm: 'unready' };
    return { vm: 'ready', instance: { ...instanceOf(vm, lookups.sizes.latest), ...addresses, ready: true } };
  }

  private async failure(call: Call): Promise<InstanceFailedError> {
    const vm = await this.session.client.getVm(this.name, call, 'instanceView');
    return new InstanceFailedError(`VM ${this.name}: ${failureIn(vm)}`);
  }

  private afterReading(call: MachineCall): Advance {
    const found = this.reading.take();
    if (found.vm === 'ready') {
      this.externalId = this.name;
      this.state = 'ready';
      return { next: 'complete', instance: found.instance };
    }
    this.state = 'looking';
    if (found.vm === 'unready') {
      this.externalId = this.name;
      this.missingSince = undefined;
    } else this.evaluateMissing(call);
    return { next: 'delay', ms: POLL_INTERVAL_MS };
  }

  private evaluateMissing({ log }: MachineCall): void {
    const now = this.session.clock.monotonic();
    this.missingSince ??= now;
    if (now - this.missingSince < SETTLE_MS) return;
    if (this.externalId !== undefined && this.doubt === undefined) {
      throw new InstanceFailedError(`VM ${this.name} disappeared during its creation`);
    }
    this.absent = true;
    log.info('A VM whose creation was in doubt is not there', { external_id: this.name });
    const reason = this.doubt?.message ?? 'the launcher was restarted while the VM was made';
    // Not retried here: the launcher starts a new attempt, whose VM has another name than one that appears late.
    throw new DriverError(this.doubt?.code ?? 'transient', `${reason}; Azure has no such VM`, {
      cause: this.doubt,
      outcome: 'not-applied',
    });
  }
}
