/**
 * Interfaces of a driver on the simple framework, for clouds that create and delete an instance as a unit. The
 * implementation, on top of the state machines, is in `simple/`.
 */

import type { JsonObject } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';
import type { Instance, ProviderContext, Resource } from './api.js';
import type { JsonSchema } from './json-schema.js';
import type { ImageManager } from './images.js';
import type { LabelConfig, PoolConfig, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';
import type { SiteDescription, SiteGuide } from './site.js';
import type { CreateRequest } from './state-machine-api.js';
import type { TaskManager } from './task-manager.js';

/** Definition of a driver on this framework, from which `simpleTaskManagerDriver` creates a `Driver`. */
export interface SimpleTaskManagerDriver<L extends LabelConfig, P extends ProviderConfig<L>> {
  readonly name: string;
  readonly schema: JsonSchema;
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): P;
  readonly siteGuide?: SiteGuide;
  getAdapter(config: P): SimpleTaskManagerAdapter<L>;
}

/** An instance as the cloud lists it. */
export type SimpleTaskManagerInstance = Instance;

/**
 * A cloud, as the framework uses it. Sends every remote call through `tasks`, or through an `ApiClient` of its own,
 * which also handles credentials and foreign answers.
 */
export interface SimpleTaskManagerAdapter<L extends LabelConfig = LabelConfig> {
  readonly images?: ImageManager;
  readonly listIntervalMs?: number;
  /** See `Adapter.uniqueIds`. */
  readonly uniqueIds?: boolean;
  /** Maximum number of remote calls in progress; they start at the provider's rate regardless. Default 1. */
  readonly concurrency?: number;
  /** Starts the adapter. `tasks` is the task manager of all other methods, for calls outside of them (`images`). */
  start?(context: ProviderContext, tasks: TaskManager): Promise<void>;
  stop?(): void | Promise<void>;
  /**
   * Starts the creation of an instance with the request's tags and resolves with its id. The instance may become ready
   * later, as shown by `listInstances`. If a further call fails after the cloud has accepted the creation, e.g. a poll
   * of its operation, the framework searches for the instance.
   */
  createInstance(tasks: TaskManager, request: CreateRequest<L>, call: Call): Promise<ExternalId>;
  /** Starts the deletion. Rejects with `NotFoundError` or resolves if the instance is unknown. */
  deleteInstance(tasks: TaskManager, externalId: ExternalId, call: Call): Promise<void>;
  listInstances(tasks: TaskManager, call: Call): Promise<readonly SimpleTaskManagerInstance[]>;
  /** Lists resources other than instances that can be left behind, e.g. disks and images. Requires `deleteResource`. */
  listResources?(tasks: TaskManager, call: Call): Promise<readonly Resource[]>;
  /** Deletes a listed resource. Resolves if the resource no longer exists. */
  deleteResource?(tasks: TaskManager, resource: Resource, call: Call): Promise<void>;
  getQuotaLimits?(tasks: TaskManager, call: Call): Promise<QuotaInformation>;
  /** `machineType` is one of the label's `machineTypes`; undefined if it has none. */
  getQuotaForLabel?(tasks: TaskManager, label: L, call: Call, machineType?: string): Promise<QuotaInformation>;
  getAvailabilityZones?(tasks: TaskManager, pool: PoolConfig<L>, call: Call): Promise<readonly string[]>;
  getConsoleLog?(tasks: TaskManager, externalId: ExternalId, label: L, call: Call): Promise<string | undefined>;
  /** See `Provider.describeSite`. */
  describeSite?(tasks: TaskManager, call: Call): Promise<SiteDescription>;
}
