/**
 * The cloud as the simple framework uses it: an instance is created and deleted as a unit. The framework and the
 * launcher handle locks, records, retries, quota, timeouts, unknown outcomes of calls and leak cleanup.
 */

import {
  QuotaInformation,
  type Call,
  type CreateRequest,
  type ExternalId,
  type ProviderConfig,
  type ProviderContext,
  type SimpleTaskManagerAdapter,
  type SimpleTaskManagerInstance,
  type TaskManager,
} from '@nodepool/core';
import { Client } from './client.js';
import type { MyCloudLabel } from './config.js';
import { idOf, instanceOf, specOf } from './instance.js';
import type { TinyCloud } from './tiny-cloud.js';

export class MyCloudAdapter implements SimpleTaskManagerAdapter<MyCloudLabel> {
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
   * early. The task manager, which other methods also get, is for drivers without an `ApiClient`.
   */
  async start(context: ProviderContext): Promise<void> {
    this.started ??= new Client(this.cloud, this.config, context);
    return Promise.resolve();
  }

  /** Stops the adapter; called last. */
  stop(): void {
    this.started?.stop();
  }

  /** Starts the creation. The instance is ready once a listing shows it as ready. */
  async createInstance(_tasks: TaskManager, request: CreateRequest<MyCloudLabel>, call: Call): Promise<ExternalId> {
    const { id } = await this.client.createInstance(specOf(request), call);
    return id;
  }

  /** Starts the deletion. The instance is deleted once listings lack it. */
  async deleteInstance(_tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void> {
    await this.client.deleteInstance(idOf(externalId), call);
  }

  /**
   * Resolves with all instances, including those that Nodepool did not create. Tags identify Nodepool's instances, and
   * the rest counts against the quota.
   */
  async listInstances(_tasks: TaskManager, call: Call): Promise<readonly SimpleTaskManagerInstance[]> {
    const instances = await this.client.listInstances(call);
    return instances.map(instanceOf);
  }

  /** Resolves with the total limits of the project. The launcher subtracts the resources in use. */
  async getQuotaLimits(_tasks: TaskManager, call: Call): Promise<QuotaInformation> {
    return QuotaInformation.limit({ ...(await this.client.limits(call)) });
  }

  /** Resolves with the resources that one instance of a label needs. */
  getQuotaForLabel(_tasks: TaskManager, { cores, ram }: MyCloudLabel): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use({ instances: 1, cores, ram }));
  }

  private get client(): Client {
    if (this.started === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.started;
  }
}
