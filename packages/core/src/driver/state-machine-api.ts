/**
 * Interfaces of a driver on the state-machine framework. The driver defines how to create, delete and list; the
 * framework and the launcher handle locks, records, quota, retries, timeouts, leak cleanup and statistics. The
 * implementation is in `state-machine/`.
 */

import type { JsonObject, JsonValue } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';
import type { DriverError } from './errors.js';
import type { Instance, InstanceTags, ProviderContext, Readiness, RequestInfo, Resource } from './api.js';
import type { JsonSchema } from './json-schema.js';
import type { ImageManager } from './images.js';
import type { LabelConfig, PoolConfig, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';
import type { SiteDescription, SiteGuide } from './site.js';

/** Definition of a driver on this framework, from which `stateMachineDriver` creates a `Driver`. */
export interface StateMachineDriver<L extends LabelConfig, P extends ProviderConfig<L>> {
  readonly name: string;
  readonly schema: JsonSchema;
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): P;
  readonly siteGuide?: SiteGuide;
  getAdapter(config: P): Adapter<L>;
}

/** A cloud, as the framework uses it. */
export interface Adapter<L extends LabelConfig = LabelConfig> {
  readonly images?: ImageManager;
  /** Minimum time between two listings while a machine waits for one, in milliseconds. Default 1000. */
  readonly listIntervalMs?: number;
  /**
   * True if the cloud never gives the id of a deleted instance to another one, e.g. if the id is a UUID, or a name that
   * contains the launch attempt. By default, the framework compares the tags of an instance wherever it finds one by
   * its id, and a deletion begins with a listing.
   */
  readonly uniqueIds?: boolean;

  start?(context: ProviderContext): Promise<void>;
  /** Releases connections. No method is called afterwards. */
  stop?(): void | Promise<void>;
  /**
   * Creates a machine that creates an instance or, given `saved`, resumes the saved machine. For `INTERRUPTED_LAUNCH`,
   * the machine first searches for what an earlier machine may have created (`attemptLookup`); if it finds nothing, it
   * fails with a `transient` error whose outcome is `not-applied`.
   */
  getCreateStateMachine(request: CreateRequest<L>, saved: JsonValue): StateMachine;
  /**
   * Creates a machine that deletes an instance and all resources created with it. Without `uniqueIds`, a machine sends
   * no further delete call after an accepted one, because the id may already belong to another instance. After a failed
   * call, it throws, and the framework searches for the instance before it creates another machine.
   */
  getDeleteStateMachine(externalId: ExternalId, saved: JsonValue, log: Call['log']): StateMachine;
  /** Resolves with all instances of the account, from all pages. Rejects rather than returning a partial list. */
  listInstances(call: Call): Promise<readonly Instance[]>;
  /** Resolves with the instances and all other resources that can be left behind. */
  listResources(call: ResourceCall): Promise<readonly Resource[]>;
  deleteResource(resource: Resource, call: Call): Promise<void>;
  /**
   * Deletes untagged resources that are certainly unused according to rules of the driver, e.g. ports of deleted
   * instances. Called in every cleanup round, after the leaked resources are deleted.
   */
  cleanUpUntagged?(call: Call): Promise<void>;
  getQuotaLimits?(call: Call): Promise<QuotaInformation>;
  /** `machineType` is one of the label's `machineTypes`; undefined if it has none. */
  getQuotaForLabel?(label: L, call: Call, machineType?: string): Promise<QuotaInformation>;
  getAvailabilityZones?(pool: PoolConfig<L>, call: Call): Promise<readonly string[]>;
  labelReady?(label: L): Readiness;
  /** See `Provider.shortage`. */
  shortage?(pool: PoolConfig<L>, labels: readonly string[]): string | undefined;
  getConsoleLog?(externalId: ExternalId, label: L, call: Call): Promise<string | undefined>;
  /** See `Provider.describeSite`. */
  describeSite?(call: Call): Promise<SiteDescription>;
}

/** Arguments of a listing of resources. */
export interface ResourceCall extends Call {
  /**
   * Resolves with the result of the adapter's `listInstances`, which the launcher also uses to check its ready nodes:
   * an adapter that lists the instances here, and not by a call of its own, saves one call per minute.
   */
  listInstances(): Promise<readonly Instance[]>;
}

/** Properties of the instance to create. */
export interface CreateRequest<L extends LabelConfig = LabelConfig> {
  readonly hostname: string;
  readonly label: L;
  readonly pool: PoolConfig<L>;
  readonly availabilityZone: string | undefined;
  /** The machine type to use, one of the label's `machineTypes`; absent if the label has none. */
  readonly machineType?: string | undefined;
  readonly imageExternalId: ExternalId | undefined;
  /**
   * Tags that every resource must carry from its creation. After a call with an unknown outcome, search for
   * `nodepool_launch_attempt`.
   */
  readonly tags: InstanceTags;
  readonly request: RequestInfo;
  /** External id saved with the node by an earlier process, or null. */
  readonly externalId: ExternalId | null;
}

/** Arguments of one step of a machine. */
export interface MachineCall extends Call {
  /** Latest listing of the provider; undefined before the first one. */
  readonly listing: Listing | undefined;
  /** Reports a failed step that the machine repeats by itself, so that it counts at once. `StepRetries` calls it. */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
}

/** A complete list of instances. */
export interface Listing {
  /** Increases with each listing. A listing is requested only after the previous one has ended. */
  readonly round: number;
  /** Time of the request (`Clock.monotonic`, ms). The listing includes earlier events, if the cloud is consistent. */
  readonly askedAt: number;
  /** Returns the instance with the id. For a machine, it has the tags of its launch attempt; see `uniqueIds`. */
  byExternalId(externalId: ExternalId): Instance | undefined;
  /** Returns all instances with the id: several if the cloud uses ids again, and still lists a deleted instance. */
  allByExternalId(externalId: ExternalId): readonly Instance[];
  /** Returns the instances with the given tag, e.g. of a launch attempt. */
  byTag(tag: string, value: string): readonly Instance[];
}

/** Event that a machine waits for. */
export type Advance =
  /** Advance the machine once its own call settles. The machine reads the result or the error itself. */
  | { readonly next: 'call'; readonly settled: Promise<unknown> }
  /** Advance the machine with a listing requested from now on. */
  | { readonly next: 'listing' }
  /** Advance the machine after `ms` milliseconds. */
  | { readonly next: 'delay'; readonly ms: number }
  /** The work is done. A create machine returns its ready instance. */
  | { readonly next: 'complete'; readonly instance?: Instance };

/**
 * Steps through the creation or the deletion of an instance. `advance` starts or checks the next step and returns
 * without waiting for the cloud; it throws a `DriverError` if the work has failed. Another process can recreate a
 * machine from its state after any step, and must then look for the effect of a call in progress before repeating it.
 */
export interface StateMachine {
  /** Name of the current step, initially `start`, for logs and the stack dump. */
  readonly state: string;
  /** Set as soon as it is known. */
  readonly externalId: ExternalId | undefined;
  /**
   * The cloud's description of a deletion that it has accepted and does not complete, in words for operators. Undefined
   * for the first seconds, and for machines that create.
   */
  readonly waitsFor?: string | undefined;
  advance(call: MachineCall): Advance;
  save(): JsonValue;
}
