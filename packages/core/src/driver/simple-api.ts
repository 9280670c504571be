/**
 * What a driver on the simple framework implements: for clouds in which an instance is created and deleted as a unit.
 * A few methods make a driver. Implementation, on top of the state machines: `simple/`.
 */

import type { JsonObject } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';
import type { Driver, Instance, ProviderContext, Resource } from './api.js';
import type { JsonSchema } from './json-schema.js';
import type { ImageManager } from './images.js';
import type { LabelConfig, PoolConfig, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';
import type { CreateRequest } from './state-machine-api.js';
import type { TaskManager } from './task-manager.js';

/** Definition of a driver on this framework; `simpleTaskManagerDriver` makes a `Driver` of it. */
export interface SimpleTaskManagerDriver<L extends LabelConfig, P extends ProviderConfig<L>> {
  readonly name: string;
  readonly schema: JsonSchema;
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): P;
  getAdapter(config: P): SimpleTaskManagerAdapter<L>;
}

export type MakeSimpleTaskManagerDriver = <L extends LabelConfig, P extends ProviderConfig<L>>(
  definition: SimpleTaskManagerDriver<L, P>,
) => Driver;

/** An instance as the cloud lists it. */
export type SimpleTaskManagerInstance = Instance;

/** Every remote call goes through `tasks`: `await tasks.submit({...})`. */
export interface SimpleTaskManagerAdapter<L extends LabelConfig = LabelConfig> {
  readonly images?: ImageManager;
  readonly listIntervalMs?: number;
  /** Remote calls under way at the same time; they begin at the provider's rate in any case. Default 1. */
  readonly concurrency?: number;
  /** `tasks` is what every other method gets, for what is called by others than this framework, e.g. `images`. */
  start?(context: ProviderContext, tasks: TaskManager): Promise<void>;
  stop?(): void | Promise<void>;
  /** Starts the creation with the request's tags on the instance; resolves with its id. It may become ready later: the list tells. */
  createInstance(tasks: TaskManager, request: CreateRequest<L>, call: Call): Promise<ExternalId>;
  /** Starts the deletion. An unknown instance is a `NotFoundError` or a success. */
  deleteInstance(tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void>;
  listInstances(tasks: TaskManager, call: Call): Promise<readonly SimpleTaskManagerInstance[]>;
  /** What else could be left behind, besides instances: disks, images. With `deleteResource`. */
  listResources?(tasks: TaskManager, call: Call): Promise<readonly Resource[]>;
  /** Deletes one of those. That it is gone already is a success. */
  deleteResource?(tasks: TaskManager, resource: Resource, call: Call): Promise<void>;
  getQuotaLimits?(tasks: TaskManager, call: Call): Promise<QuotaInformation>;
  getQuotaForLabel?(tasks: TaskManager, label: L, call: Call): Promise<QuotaInformation>;
  getAvailabilityZones?(tasks: TaskManager, pool: PoolConfig<L>, call: Call): Promise<readonly string[]>;
  getConsoleLog?(tasks: TaskManager, externalId: ExternalId, label: L, call: Call): Promise<string | undefined>;
}
