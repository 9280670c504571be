/**
 * The cloud as the state-machine framework uses it, the central part of a driver. The framework and the launcher handle
 * locks, records, retries, quota, timeouts and leak cleanup.
 */

import {
  isDriverError,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type PoolConfig,
  type ProviderContext,
  type QuotaInformation,
  type Readiness,
  type Resource,
  type ResourceCall,
  type SiteDescription,
  type StateMachine,
  type DriverError,
} from '@nodepool/core';
import type { ExampleCloudApi } from './client/client.js';
import { HttpClient } from './client/http.js';
import { InProcessClient } from './client/in-process.js';
import { allPages } from './client/pages.js';
import type { ExampleCloud } from './cloud/cloud.js';
import { localCloud } from './cloud/registry.js';
import type { CloudDescription, InstanceSpec } from './cloud/types.js';
import type { ExampleLabel, ExampleProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { ExampleImages, imageId } from './images.js';
import { instanceOf } from './instance.js';
import { limitOf, needOf, sizeOf } from './quota.js';
import { describeSite } from './site.js';

const START_TIMEOUT_MS = 30_000;

export class ExampleAdapter implements Adapter<ExampleLabel> {
  readonly images = new ExampleImages(() => this.api);
  private readonly stopped = new AbortController();
  private context: ProviderContext | undefined;
  private client: ExampleCloudApi | undefined;
  private description: CloudDescription | undefined;

  /** `cloud` overrides the cloud of the configuration. */
  constructor(
    private readonly config: ExampleProvider,
    private readonly cloud: ExampleCloud | undefined,
  ) {}

  /**
   * Connects to the cloud; called once, before any other method. Sends a call to the cloud, so that a wrong endpoint or
   * wrong credentials are detected before the first request. A rejection is retried later.
   */
  async start(context: ProviderContext): Promise<void> {
    this.context = context;
    this.client = this.connect(context);
    await this.describe(this.ownCall(START_TIMEOUT_MS, context.log));
  }

  /** True for an example cloud that never uses an id again, like most clouds; false enables further checks. */
  get uniqueIds(): boolean {
    return this.description?.reusesIds === false;
  }

  /** Stops the adapter; called last. The example cloud and its instances continue to exist. */
  stop(): void {
    this.stopped.abort(new Error('the provider was stopped'));
  }

  /**
   * Creates a machine for one attempt to create one instance. The tags are part of the create call: an instance that is
   * tagged later is lost if the launcher stops before tagging it.
   */
  getCreateStateMachine(request: CreateRequest<ExampleLabel>, saved: JsonValue): StateMachine {
    return new CreateMachine(this.api, specOf(request), {
      attempt: request.tags.nodepool_launch_attempt,
      useInternalIp: request.label.useInternalIp,
      saved,
      externalId: request.externalId,
    });
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(this.api, externalId, this.uniqueIds);
  }

  /**
   * Resolves with all instances, including those that Nodepool did not create. Core identifies its own by their tags,
   * and counts the rest against the quota.
   */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const instances = await allPages((marker) => this.api.listInstances(marker, call));
    return instances.map(instanceOf);
  }

  /** Resolves with all resources that a crashed launcher or builder may leave behind: instances and images. */
  async listResources(call: ResourceCall): Promise<readonly Resource[]> {
    const instances = await call.listInstances();
    const images = await allPages((marker) => this.api.listImages(marker, call));
    return [
      ...instances.map(({ externalId, hostname: name = '', tags }) => ({ kind: 'instance', externalId, name, tags })),
      ...images.map(({ id, name, tags }) => ({ kind: 'image', externalId: id, name, tags })),
    ];
  }

  /** Deletes a listed resource. Resolves if the resource no longer exists. */
  async deleteResource({ kind, externalId }: Resource, call: Call): Promise<void> {
    try {
      if (kind === 'image') await this.api.deleteImage(imageId(externalId), call);
      else await this.api.deleteInstance(imageId(externalId), call);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return limitOf(await this.describe(call));
  }

  getQuotaForLabel(label: ExampleLabel, _call: Call, machineType = label.size): Promise<QuotaInformation> {
    return Promise.resolve(needOf(this.description, label, machineType));
  }

  getAvailabilityZones(pool: PoolConfig<ExampleLabel>): Promise<readonly string[]> {
    const configured = pool.availabilityZones;
    return Promise.resolve(configured.length > 0 ? configured : (this.description?.zones ?? []));
  }

  /** Returns `ready` if the cloud has one of the label's sizes. Pools accept no requests for labels that are not. */
  labelReady(label: ExampleLabel): Readiness {
    const wanted = label.machineTypes ?? [label.size];
    if (wanted.some((size) => sizeOf(this.description, label, size) !== undefined)) return { ready: true };
    const sizes = (this.description?.sizes ?? []).map(({ name }) => name).join(', ');
    const names = wanted.map((size) => JSON.stringify(size)).join(' or ');
    return { ready: false, reason: `the cloud has no size ${names}; it has: ${sizes}` };
  }

  async getConsoleLog(externalId: ExternalId, _label: ExampleLabel, call: Call): Promise<string | undefined> {
    return typeof externalId === 'string' ? this.api.consoleOf(externalId, call) : undefined;
  }

  /** Resolves with the lists from which `nodepool init` lets the operator choose. */
  describeSite(call: Call): Promise<SiteDescription> {
    return describeSite(this.api, call);
  }

  private get api(): ExampleCloudApi {
    if (this.client === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.client;
  }

  private connect(context: ProviderContext): ExampleCloudApi {
    const { name, endpoint, cloudSettings, callsPerSecond } = this.config;
    const { clock, onApiCall } = context;
    const callContext = { clock, onApiCall, callsPerSecond };
    if (this.cloud === undefined && endpoint !== undefined) return new HttpClient(endpoint, callContext);
    return new InProcessClient(this.cloud ?? localCloud(name, context, cloudSettings), callContext);
  }

  private async describe(call: Call): Promise<CloudDescription> {
    this.description = await this.api.describe(call);
    return this.description;
  }

  /** Returns a call of the adapter itself, which is aborted when the provider is stopped. */
  private ownCall(timeoutMs: number, log: Call['log']): Call {
    const now = this.context?.clock.monotonic() ?? 0;
    return { signal: this.stopped.signal, deadline: now + timeoutMs, log };
  }
}

function specOf({
  hostname,
  label,
  availabilityZone,
  machineType,
  imageExternalId,
  tags,
}: CreateRequest<ExampleLabel>): InstanceSpec {
  return {
    name: hostname,
    zone: availabilityZone ?? null,
    size: machineType ?? label.size ?? null,
    cores: label.size === undefined ? label.cores : null,
    ram: label.size === undefined ? label.ram : null,
    image: imageExternalId === undefined ? label.cloudImage : imageId(imageExternalId),
    tags: { ...tags },
  };
}

function isNotFound(error: unknown): error is DriverError {
  return isDriverError(error) && error.code === 'not-found';
}
