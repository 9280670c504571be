/** The adapter between the simple framework and Compute Engine. */

import {
  ConfigurationError,
  DriverError,
  isDriverError,
  type ApiClient,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonObject,
  type PoolConfig,
  type ProviderContext,
  type QuotaInformation,
  type Resource,
  type SimpleTaskManagerAdapter,
  type SiteDescription,
  type TaskManager,
} from '@nodepool/core';
import { Compute } from './client/compute.js';
import { connect } from './client/google.js';
import { Storage } from './client/storage.js';
import { imagePath, type GceLabel, type GceProvider } from './config.js';
import { GceImages } from './images.js';
import {
  externalIdOf,
  hasZone,
  instanceBody,
  instanceName,
  instanceOf,
  isNameOf,
  placeIn,
  placeOf,
  requestId,
  tagsOf,
  type InstancePlace,
} from './instance.js';
import { MachineTypes } from './machine-types.js';
import { hasPreemptibleQuota, limitsIn, needOf, type MachineSize } from './quota.js';
import { deleteResource, listResources } from './resources.js';
import { describeSite } from './site.js';
import { DISK_GRAIN_BYTES } from './tar-gz.js';
import { usedZones, ZoneLists, zonesIn } from './zone-lists.js';

const CONSOLE_CHARACTERS = 32_000;
const START_TIMEOUT_MS = 60_000;
/** Minimum interval between listings, which use up a low limit of calls per second (ms). */
const LIST_INTERVAL_MS = 3000;

/** Objects that exist after `start`. */
interface Started {
  readonly compute: Compute;
  readonly storage: Storage | undefined;
  readonly zones: ZoneLists;
  readonly machineTypes: MachineTypes;
}

export class GceAdapter implements SimpleTaskManagerAdapter<GceLabel> {
  readonly listIntervalMs = LIST_INTERVAL_MS;
  /** Names contain the launch attempt. */
  readonly uniqueIds = true;
  readonly images: GceImages;
  private readonly stopped = new AbortController();
  private started: Started | undefined;
  private api: ApiClient<Headers> | undefined;
  /** True if the region has a quota for preemptible cores. */
  private preemptibleQuota = false;

  constructor(
    private readonly config: GceProvider,
    diskGrainBytes = DISK_GRAIN_BYTES,
  ) {
    this.images = new GceImages(config, diskGrainBytes);
  }

  /** Reads the region, so that wrong credentials, projects and regions are reported at startup. */
  async start({ clock, random, log, onApiCall }: ProviderContext): Promise<void> {
    const { config } = this;
    const google = connect(config, { clock, onApiCall });
    this.api = google.api;
    const compute = new Compute(google, config.project, clock);
    const call: Call = { signal: this.stopped.signal, deadline: clock.monotonic() + START_TIMEOUT_MS, log };
    let region: JsonObject;
    try {
      region = await compute.region(config.region, call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      const message = `provider ${config.name}: project ${config.project} has no region ${config.region}`;
      throw new ConfigurationError(message, { cause: error });
    }
    const bucket = config.storageBucket;
    const storage = bucket === undefined ? undefined : new Storage({ google, bucket, clock, random });
    this.preemptibleQuota = hasPreemptibleQuota(region);
    const zones = new ZoneLists(compute, clock, usedZones(config), zonesIn(region));
    this.started = { compute, storage, zones, machineTypes: new MachineTypes(compute, clock) };
    this.images.start({ compute, storage, clock, random });
  }

  stop(): void {
    this.api?.stop();
    this.stopped.abort(new Error('the provider was stopped'));
  }

  /** Resolves when the cloud has accepted the instance and created its disk. The listing shows when it is running. */
  async createInstance(_tasks: TaskManager, request: CreateRequest<GceLabel>, call: Call): Promise<ExternalId> {
    const { compute } = this.running;
    const name = instanceName(request.hostname, request.tags.nodepool_launch_attempt);
    const zone = request.availabilityZone ?? request.pool.availabilityZones[0] ?? this.config.zone;
    const body = instanceBody({ zone, name }, request, this.imageOf(request));
    const id = requestId('create', request.tags.nodepool_launch_attempt, zone);
    const operation = await this.accepted(request, compute.insertInstance(zone, body, id, call));
    await this.accepted(request, compute.finish(operation, `creation of instance ${name}`, call));
    return externalIdOf({ zone, name }, this.config.zone);
  }

  async deleteInstance(_tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void> {
    const place = placeOf(externalId, this.config.zone);
    try {
      await this.deleteAt(place, call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      const former = hasZone(externalId) ? undefined : await this.formerPlaceOf(place, call);
      if (former === undefined) throw error;
      await this.deleteAt(former, call);
    }
  }

  private async deleteAt({ zone, name }: InstancePlace, call: Call): Promise<void> {
    const { compute } = this.running;
    const operation = await compute.deleteInstance(zone, name, call);
    await compute.finish(operation, `deletion of instance ${name}`, call);
  }

  /**
   * Resolves with the place of an instance in another zone, if the provider's zone was different at its creation. Only
   * an instance with the launch attempt that its name is derived from counts. A known list suffices, because the
   * instance is older than this provider.
   */
  private async formerPlaceOf({ name }: InstancePlace, call: Call): Promise<InstancePlace | undefined> {
    const places = (await this.running.zones.latest(call)).map((data) => ({
      place: placeIn(data),
      tags: tagsOf(data),
    }));
    return places.find(
      ({ place, tags: { nodepool_provider_name: provider, nodepool_launch_attempt: attempt } }) =>
        place.name === name && provider === this.config.name && attempt !== undefined && isNameOf(attempt, name),
    )?.place;
  }

  /** Lists the instances of the region, because they count against its limits. */
  async listInstances(_tasks: TaskManager, call: Call): Promise<readonly Instance[]> {
    const { zones, machineTypes } = this.running;
    const { region, zone, internalPools } = this.config;
    const listed = await zones.list(call);
    await machineTypes.learn(listed, region, call);
    const sizeOf = (machineType: string): MachineSize | undefined => machineTypes.known(machineType);
    const { preemptibleQuota } = this;
    return listed.map((data) => instanceOf(data, { region, zone, sizeOf, preemptibleQuota, internalPools }));
  }

  listResources(_tasks: TaskManager, call: Call): Promise<readonly Resource[]> {
    return listResources(this.running, call);
  }

  deleteResource(_tasks: TaskManager, resource: Resource, call: Call): Promise<void> {
    return deleteResource(this.running, resource, call);
  }

  async getQuotaLimits(_tasks: TaskManager, call: Call): Promise<QuotaInformation> {
    const region = await this.running.compute.region(this.config.region, call);
    this.preemptibleQuota = hasPreemptibleQuota(region);
    return limitsIn(region);
  }

  /** Rejects with `ConfigurationError` if none of the pool's zones has the machine type. */
  async getQuotaForLabel(
    _tasks: TaskManager,
    label: GceLabel,
    call: Call,
    machineType = label.instanceType,
  ): Promise<QuotaInformation> {
    const size = await this.running.machineTypes.read(label.zones, machineType, call);
    if (size !== undefined) {
      const preemptible = this.preemptibleQuota && label.provisioning !== 'standard';
      return needOf({ machineType, preemptible, accelerators: label.accelerators }, size);
    }
    const zones = label.zones.join(', ');
    throw new ConfigurationError(`label ${label.name}: machine type ${machineType} does not exist in ${zones}`);
  }

  async getAvailabilityZones(_tasks: TaskManager, pool: PoolConfig<GceLabel>): Promise<readonly string[]> {
    return pool.availabilityZones;
  }

  async getConsoleLog(_tasks: TaskManager, externalId: ExternalId, _label: GceLabel, call: Call): Promise<string> {
    const { zone, name } = placeOf(externalId, this.config.zone);
    const output = await this.running.compute.serialOutput(zone, name, call);
    return output.slice(-CONSOLE_CHARACTERS);
  }

  async describeSite(_tasks: TaskManager, call: Call): Promise<SiteDescription> {
    const { compute } = this.running;
    return describeSite(compute, zonesIn(await compute.region(this.config.region, call)), call);
  }

  /** Turns "not found" of a creation into a configuration error, but not for uploaded images, which may be deleted. */
  private async accepted<T>({ label }: CreateRequest<GceLabel>, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const lacks = isDriverError(error) && error.code === 'not-found' && error.outcome === 'not-applied';
      if (!lacks || (label.image.kind === 'diskimage' && /\/images\//.test(error.message))) throw error;
      throw new ConfigurationError(`label ${label.name}: ${error.message}`, { cause: error });
    }
  }

  private imageOf({ label, imageExternalId }: CreateRequest<GceLabel>): string {
    if (label.cloudImage !== undefined) return label.cloudImage;
    if (typeof imageExternalId === 'string') return imagePath(this.config.project, imageExternalId);
    throw new ConfigurationError(`label ${label.name}: its disk image has no upload that could be used`);
  }

  private get running(): Started {
    if (this.started !== undefined) return this.started;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }
}
