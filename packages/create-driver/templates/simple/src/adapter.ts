/**
 * The cloud as the simple framework uses it: an instance is created and deleted as a unit. The framework and the
 * launcher handle locks, records, retries, quota, timeouts, unknown outcomes of calls and leak cleanup.
 */

import {
  QuotaInformation,
  type Call,
  type CreateRequest,
  type ExternalId,
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
  private readonly client: Client;

  constructor(cloud: TinyCloud) {
    this.client = new Client(cloud);
  }

  /** Starts the creation. The instance is ready once a listing shows it as ready. */
  async createInstance(tasks: TaskManager, request: CreateRequest<MyCloudLabel>, call: Call): Promise<ExternalId> {
    const { id } = await this.client.createInstance(tasks, specOf(request), call);
    return id;
  }

  /** Starts the deletion. The instance is deleted once listings lack it. */
  async deleteInstance(tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void> {
    await this.client.deleteInstance(tasks, idOf(externalId), call);
  }

  /**
   * Resolves with all instances, including those that Nodepool did not create. Tags identify Nodepool's instances, and
   * the rest counts against the quota.
   */
  async listInstances(tasks: TaskManager, call: Call): Promise<readonly SimpleTaskManagerInstance[]> {
    const instances = await this.client.listInstances(tasks, call);
    return instances.map(instanceOf);
  }

  /** Resolves with the total limits of the project. The launcher subtracts the resources in use. */
  async getQuotaLimits(tasks: TaskManager, call: Call): Promise<QuotaInformation> {
    return QuotaInformation.limit({ ...(await this.client.limits(tasks, call)) });
  }

  /** Resolves with the resources that one instance of a label needs. */
  getQuotaForLabel(_tasks: TaskManager, { cores, ram }: MyCloudLabel): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use({ instances: 1, cores, ram }));
  }
}
