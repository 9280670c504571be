/**
 * The cloud, as the simple framework wants to see it: an instance is created and deleted as a unit. Locks, records,
 * retries, quota, time-outs, what is done when it is not known whether a call took effect, and the search for leaks are
 * the business of the framework and the launcher.
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
  private readonly client: Client;

  constructor(cloud: TinyCloud) {
    this.client = new Client(cloud);
  }

  /** Starts the creation. That the instance is ready is seen in the list. */
  async createInstance(tasks: TaskManager, request: CreateRequest<MyCloudLabel>, call: Call): Promise<ExternalId> {
    const { id } = await this.client.createInstance(tasks, specOf(request), call);
    return id;
  }

  /** Starts the deletion. That the instance is gone is seen in the list. */
  async deleteInstance(tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void> {
    await this.client.deleteInstance(tasks, idOf(externalId), call);
  }

  /** All instances, also those of others: what is ours is known by the tags, and the others count for the quota. */
  async listInstances(tasks: TaskManager, call: Call): Promise<readonly SimpleTaskManagerInstance[]> {
    const instances = await this.client.listInstances(tasks, call);
    return instances.map(instanceOf);
  }

  /** What the project may have in total. What is in use is not subtracted: the launcher knows that better. */
  async getQuotaLimits(tasks: TaskManager, call: Call): Promise<QuotaInformation> {
    return QuotaInformation.limit({ ...(await this.client.limits(tasks, call)) });
  }

  /** What one instance of a label takes of that. */
  getQuotaForLabel(_tasks: TaskManager, { cores, ram }: MyCloudLabel): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use({ instances: 1, cores, ram }));
  }
}
