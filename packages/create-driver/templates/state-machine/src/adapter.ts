/**
 * The cloud, as the state-machine framework wants to see it. This is the heart of a driver: locks, records, retries,
 * quota, time-outs and the search for leaks are the business of the framework and the launcher.
 */

import {
  createTaskManager,
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
  type StateMachine,
  type TaskManager,
} from '@nodepool/core';
import { Client } from './client.js';
import type { MyCloudLabel } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { idOf, instanceOf, specOf } from './instance.js';
import type { TinyCloud } from './tiny-cloud.js';

/** Calls under way at the same time; as many as the cloud bears. */
const CALLS_AT_ONCE = 10;
/** After that a call has an unknown outcome. */
const CALL_TIMEOUT_MS = 60_000;

export class MyCloudAdapter implements Adapter<MyCloudLabel> {
  private readonly client: Client;
  private manager: TaskManager | undefined;

  constructor(
    private readonly config: Pick<ProviderConfig, 'name' | 'callsPerSecond'>,
    cloud: TinyCloud,
  ) {
    this.client = new Client(cloud);
  }

  /** Called before everything else. With a real cloud, ask it for something here: wrong credentials then show at once. */
  async start({ clock, onApiCall, log }: ProviderContext): Promise<void> {
    this.manager ??= createTaskManager({
      clock,
      onApiCall,
      log,
      callsPerSecond: this.config.callsPerSecond,
      concurrency: CALLS_AT_ONCE,
      callTimeoutMs: CALL_TIMEOUT_MS,
    });
    return Promise.resolve();
  }

  /** Called last. */
  async stop(): Promise<void> {
    this.manager?.stop();
    await this.manager?.join();
  }

  /** A machine for one attempt to make one instance. */
  getCreateStateMachine(request: CreateRequest<MyCloudLabel>, saved: JsonValue): StateMachine {
    const spec = specOf(request);
    return new CreateMachine((call) => this.client.createInstance(this.tasks, spec, call), {
      attempt: request.tags.nodepool_launch_attempt,
      saved,
      externalId: request.externalId,
    });
  }

  /** A machine that removes an instance, and is complete when it is gone. */
  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(externalId, (id, call) => this.client.deleteInstance(this.tasks, id, call));
  }

  /** All instances, also those of others: what is ours is known by the tags, and the others count for the quota. */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const instances = await this.client.listInstances(this.tasks, call);
    return instances.map(instanceOf);
  }

  /** Everything that a dead launcher could have left behind: add volumes, addresses and the like, if you make any. */
  async listResources(call: Call): Promise<readonly Resource[]> {
    const instances = await this.client.listInstances(this.tasks, call);
    return instances.map(({ id, name, tags }) => ({ kind: 'instance', externalId: id, name, tags }));
  }

  /** Deletes one of those. That it is gone already is a success. */
  async deleteResource({ externalId }: Resource, call: Call): Promise<void> {
    try {
      await this.client.deleteInstance(this.tasks, idOf(externalId), call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
    }
  }

  /** What the project may have in total. What is in use is not subtracted: the launcher knows that better. */
  async getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return QuotaInformation.limit({ ...(await this.client.limits(this.tasks, call)) });
  }

  /** What one instance of a label takes of that. */
  getQuotaForLabel({ cores, ram }: MyCloudLabel): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use({ instances: 1, cores, ram }));
  }

  private get tasks(): TaskManager {
    if (this.manager === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.manager;
  }
}
