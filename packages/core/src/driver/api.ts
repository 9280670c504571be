/**
 * The public driver API: what a driver implements, in plain interfaces. A driver that implements `Driver`, `Provider`
 * and `NodeRequestHandler` does everything itself; most drivers use a framework instead (`state-machine/`, `simple/`),
 * which implements these on top of a few methods.
 *
 * Names are those of the developer's guide of the existing Nodepool.
 */

import type { Logger } from '../runtime/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { RandomSource } from '../runtime/random.js';
import type { TaskSupervisor } from '../runtime/tasks.js';
import type { JsonObject, JsonValue } from '../model/json.js';
import type { ExternalId, Node, Resources } from '../model/node.js';
import type { Call } from './call.js';
import type { ImageManager } from './images.js';
import type { JsonSchema } from './json-schema.js';
import type { Connection, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';

/** Version of this API. A driver names the version that it was written for in its package.json: `"nodepool": {"driver": "<name>", "api": 1}`. */
export const DRIVER_API = 1;

/** The default export (or the export `driver`) of a driver package. */
export interface Driver {
  /** Name in the configuration. */
  readonly name: string;
  /** Schema of one entry of `providers`, common keys included (see `providerSchema`). Its descriptions are the reference page. */
  readonly schema: JsonSchema;
  /** Makes the configuration of a provider from its section, which has passed `schema`. Reports what is wrong to `context`. */
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): ProviderConfig;
  /** Makes a provider. Opens nothing yet: that is `Provider.start`. */
  getProvider(config: ProviderConfig): Provider;
}

/** What a provider gets to live with. */
export interface ProviderContext {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Background work goes through this. */
  readonly tasks: TaskSupervisor;
  /** To be told of every remote call that ended. */
  readonly onApiCall: (call: ApiCall) => void;
}

/** One remote call, for metrics (`nodepool.task.<provider>.<service>.<METHOD>.<operation>`). */
export interface ApiCall {
  readonly service: string;
  readonly method: string;
  readonly operation: string;
  readonly durationMs: number;
  /** HTTP status or an error code; undefined when nothing came back. */
  readonly status: number | string | undefined;
}

/** What happened to nodes, told to the provider that owns them. */
export interface ProviderNotifications {
  /** The record of a node of this provider was removed. */
  nodeDeletedNotification?(node: Node): void;
}

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** One configured cloud. One object per life of its configuration: a changed configuration makes a new provider. */
export interface Provider extends ProviderNotifications {
  readonly config: ProviderConfig;
  /** Present when the driver manages disk images. */
  readonly images?: ImageManager;

  /** Called once, before everything else. A rejection is retried with back-off; meanwhile the provider serves nothing. */
  start(context: ProviderContext): Promise<void>;
  /** Start nothing new; abort what is in progress where it stands (it is resumed from what was saved). */
  stop(): void;
  /** Resolves once nothing runs any more, after `stop`. */
  join(): Promise<void>;

  /** Whether nodes of the label can be made at all at the moment (e.g. flavor and image exist in the cloud). */
  labelReady(pool: string, label: string): Readiness;
  /** One handler per request that a pool has accepted. */
  getRequestHandler(pool: string, request: RequestInfo): NodeRequestHandler;

  /** Starts the deletion of whatever the cloud has of a node. Rejects only when it cannot be started. */
  cleanupNode(cleanup: NodeCleanup): Promise<void>;
  /**
   * Resolves once the cloud has confirmed that nothing of the node is left, of which `cleanupNode` was called before.
   * Rejects with the `DriverError` that stopped the deletion.
   */
  waitForNodeCleanup(nodeId: string): Promise<void>;
  /**
   * Finds resources that look like ours and belong to nothing, asks `round` which of them really are leaked, deletes
   * those. `round` must be asked after the listing was made, never before.
   */
  cleanupLeakedResources(round: LeakRound, call: Call): Promise<void>;
  /** All instances of the account, those of others included, complete or rejected: never a part. */
  listNodes(call: Call): Promise<readonly Instance[]>;

  /** Limits that the cloud sets, in total (not what is left). Absent: unlimited. */
  getQuotaLimits?(call: Call): Promise<QuotaInformation>;
  /** What one node of the label needs. Absent: one instance. */
  getQuotaForLabel?(pool: string, label: string, call: Call): Promise<QuotaInformation>;
  /** Availability zones to choose from, in the pool's order; empty: the cloud chooses. */
  getAvailabilityZones?(pool: string, call: Call): Promise<readonly string[]>;
  /** Last lines of the instance's console, for the log when its login never answers. */
  getConsoleLog?(
    externalId: ExternalId,
    label: { readonly pool: string; readonly label: string },
    call: Call,
  ): Promise<string | undefined>;

  /** What is in progress, for the stack dump. */
  inspect?(): readonly WorkInProgress[];
}

/** A launch or a deletion in progress. */
export interface WorkInProgress {
  readonly kind: 'create' | 'delete';
  readonly nodeId: string;
  readonly externalId: ExternalId | undefined;
  readonly state: string;
  readonly ageMs: number;
  /** What it waits for, e.g. `call`, `listing`, and for how long. */
  readonly waitingFor: string;
  readonly waitingMs: number;
}

/** What a driver may know of a request, e.g. for templates in the configuration. */
export interface RequestInfo {
  readonly id: string;
  readonly labels: readonly string[];
  readonly requestor: string | null;
  readonly requestorData: JsonValue;
  readonly relativePriority: number;
  readonly eventId: string | null;
  /** Unix seconds. */
  readonly createdTime: number | null;
  readonly tenantName: string | null;
}

export interface NodeRequestHandlerNotifications {
  /** A ready node was taken for the request instead of launching one. */
  nodeReusedNotification?(node: Node): void;
}

/** Does a provider's part of one request. */
export interface NodeRequestHandler extends NodeRequestHandlerNotifications {
  /**
   * Makes one instance. Resolves when the cloud says that it runs and has its addresses (whether one can log in is
   * checked by the caller). Rejects with a `DriverError`; what exists of the instance then is deleted by the caller,
   * through `cleanupNode`. One call per attempt; retrying is the caller's.
   */
  launch(launch: NodeLaunch): Promise<LaunchedInstance>;
  /** True when every launch of this handler has ended, well or not. */
  launchesComplete(): boolean;
  /** Hook: whether this ready node may be used for the request. Default: yes. */
  checkReusableNode?(node: Node): boolean;
}

/** `NodeLaunch.saved` of an attempt whose process ended before it saved anything: its creation may have been asked for. */
export const INTERRUPTED_LAUNCH: JsonValue = { state: 'interrupted' };

/** One attempt to make an instance. */
export interface NodeLaunch extends Call {
  readonly nodeId: string;
  readonly hostname: string;
  readonly pool: string;
  readonly label: string;
  /** Zone to use; undefined: the cloud chooses. */
  readonly availabilityZone: string | undefined;
  /** The image, resolved: the external id of the newest upload for a label with a `diskimage`, else undefined (the driver's own cloud image). */
  readonly imageExternalId: ExternalId | undefined;
  /** To be put on every resource that is made for the node, at its creation. */
  readonly tags: InstanceTags;
  /**
   * What an earlier process saved of this same attempt (see `save`), or `INTERRUPTED_LAUNCH` if it ended before it saved
   * anything; null: nobody has begun the attempt. Unless it is null, nothing may be created before it was looked for, by
   * the attempt's tag and with patience: a call that was under way may take effect after its caller has ended.
   */
  readonly saved: JsonValue;
  /** External id that an earlier process saved, or null. */
  readonly externalId: ExternalId | null;
  /**
   * Keeps the state of the launch with the node, so that another process can go on with it. Resolves when it is
   * durable. To be called as soon as the external id is known, unless the launch ends in the same moment.
   */
  save(progress: { readonly externalId: ExternalId | null; readonly machine: JsonValue }): Promise<void>;
}

/** The identity of a resource in the cloud, written on it at creation. */
export interface InstanceTags {
  readonly nodepool_node_id: string;
  readonly nodepool_provider_name: string;
  readonly nodepool_pool_name: string;
  /** Id of the installation that the node's record belongs to: node ids are sequences, the same in every installation. */
  readonly nodepool_installation: string;
  /** uuid hex of the launch attempt. */
  readonly nodepool_launch_attempt: string;
}

/** What a launch gives: the facts that go into the node's record. Undefined fields are not known. */
export interface LaunchedInstance {
  readonly externalId: ExternalId;
  readonly interfaceIp?: string | undefined;
  readonly publicIpv4?: string | undefined;
  readonly privateIpv4?: string | undefined;
  readonly publicIpv6?: string | undefined;
  readonly hostname?: string | undefined;
  readonly cloud?: string | undefined;
  readonly region?: string | undefined;
  readonly az?: string | undefined;
  readonly hostId?: string | undefined;
  /** Amounts that the instance uses, e.g. `{cores, instances, ram}`. */
  readonly resources?: Resources | undefined;
  /** What requestors shall use to log in, where the label's configuration does not know it. */
  readonly connection?: Partial<Connection> | undefined;
  readonly driverData?: JsonValue;
  readonly slot?: number | undefined;
}

/** An instance as the cloud lists it. */
export interface Instance extends LaunchedInstance {
  /** Runs and has its addresses. */
  readonly ready: boolean;
  /** Is gone, or about to be: does not count any more. */
  readonly deleted: boolean;
  /** Will never be ready; why. */
  readonly failed?: string | undefined;
  /** Its tags; instances of others have none of ours. */
  readonly tags: Readonly<Record<string, string>>;
}

/** Anything in the cloud that costs something or blocks something: an instance, an address, a port, a volume, an image. */
export interface Resource {
  /** e.g. `instance`, `volume`; names the metric `leaked.<kind>s`. */
  readonly kind: string;
  readonly externalId: ExternalId;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** Deletion of whatever the cloud has of a node. */
export interface NodeCleanup extends Call {
  readonly nodeId: string;
  readonly pool: string | null;
  /** Null: it is not known whether there is an instance; look for the node's tags. */
  readonly externalId: ExternalId | null;
  /** Id of our installation. An instance of another one is not the node's, even if it has the node's id. */
  readonly installation: string;
  /** Attempt that the record names last; null: none. An instance without `nodepool_installation` is the node's only if it is from this one. */
  readonly launchAttempt: string | null;
  readonly saved: JsonValue;
  save(progress: { readonly machine: JsonValue }): Promise<void>;
}

/** Decides what is leaked; knows the records. */
export interface LeakRound {
  /**
   * Resolves with those of the resources, which were just listed, that must be deleted: of this installation and provider by their
   * tags, of no node and no upload that a fresh read still knows, seen in an earlier round too, and not too many at once.
   * Logs each of them with the reason.
   */
  leaked(resources: readonly Resource[]): Promise<readonly Resource[]>;
}
