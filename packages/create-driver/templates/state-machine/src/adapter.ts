/**
 * The cloud as the state-machine framework uses it, the central part of a driver. The framework and the launcher handle
 * locks, records, retries, quota, timeouts and leak cleanup.
 */

import {
  isDriverError,
  QuotaInformation,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type ProviderConfig,
  type ProviderContext,
  type Resource,
  type ResourceCall,
  type StateMachine,
} from '@nodepool/core';
import { Client } from './client.js';
import type { MyCloudLabel } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { idOf, instanceOf, specOf } from './instance.js';
import type { TinyCloud } from './tiny-cloud.js';

export class MyCloudAdapter implements Adapter<MyCloudLabel> {
  /**
   * Set this to true only if your cloud never gives the id of a deleted instance to a new one, e.g. if ids are UUIDs.
   * Deletions are then faster.
   */
  readonly uniqueIds = false;
  private started: Client | undefined;

  constructor(
    private readonly config: Pick<ProviderConfig, 'name' | 'callsPerSecond'>,
    private readonly cloud: TinyCloud,
  ) {}

  /**
   * Starts the adapter; called before any other method. With a real cloud, send a call here to detect wrong credentials
   * early.
   */
  async start(context: ProviderContext): Promise<void> {
    this.started ??= new Client(this.cloud, this.config, context);
    return Promise.resolve();
  }

  /** Stops the adapter; called last. */
  stop(): void {
    this.started?.stop();
  }

  /** Creates a machine for one attempt to create one instance. */
  getCreateStateMachine(request: CreateRequest<MyCloudLabel>, saved: JsonValue): StateMachine {
    const spec = specOf(request);
    return new CreateMachine((call) => this.client.createInstance(spec, call), {
      attempt: request.tags.nodepool_launch_attempt,
      saved,
      externalId: request.externalId,
    });
  }

  /** Creates a machine that deletes an instance and is complete once the instance no longer exists. */
  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(externalId, (id, call) => this.client.deleteInstance(id, call));
  }

  /**
   * Resolves with all instances, including those that Nodepool did not create. Tags identify Nodepool's instances, and
   * the rest counts against the quota.
   */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const instances = await this.client.listInstances(call);
    return instances.map(instanceOf);
  }

  /**
   * Resolves with all resources that a crashed launcher may leave behind. Add volumes, addresses and similar resources
   * if your driver creates them.
   */
  async listResources(call: ResourceCall): Promise<readonly Resource[]> {
    const instances = await call.listInstances();
    return instances.map(({ externalId, hostname: name = '', tags }) => ({ kind: 'instance', externalId, name, tags }));
  }

  /** Deletes a listed resource. Resolves if the resource no longer exists. */
  async deleteResource({ externalId }: Resource, call: Call): Promise<void> {
    try {
      await this.client.deleteInstance(idOf(externalId), call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
    }
  }

  /** Resolves with the total limits of the project. The launcher subtracts the resources in use. */
  async getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return QuotaInformation.limit({ ...(await this.client.limits(call)) });
  }

  /** Resolves with the resources that one instance of a label needs. */
  getQuotaForLabel({ cores, ram }: MyCloudLabel): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use({ instances: 1, cores, ram }));
  }

  private get client(): Client {
    if (this.started === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.started;
  }
}
