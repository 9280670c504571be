/**
 * The public driver API, as plain interfaces with the names of the Python Nodepool's developer guide. A driver that
 * implements `Driver`, `Provider` and `NodeRequestHandler` controls everything itself. Most drivers use a framework
 * (`state-machine/`, `simple/`), which implements these interfaces on top of a few methods.
 */

import type { Logger } from '../runtime/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { RandomSource } from '../runtime/random.js';
import type { TaskSupervisor } from '../runtime/tasks.js';
import type { JsonObject, JsonValue } from '../model/json.js';
import type { ExternalId, NodeMachine, Node, Resources } from '../model/node.js';
import type { OpenBackingNodes } from './backing-nodes.js';
import type { Call } from './call.js';
import type { DriverError } from './errors.js';
import type { ImageManager } from './images.js';
import type { JsonSchema } from './json-schema.js';
import type { LoginScan, NodeSupply } from './node-supply.js';
import type { Connection, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';
import type { SiteDescription, SiteGuide } from './site.js';

/**
 * Version of this API. A driver declares the version that it implements in its package.json:
 * `"nodepool": {"driver": "<name>", "api": 1}`.
 */
export const DRIVER_API = 1;

/** The default export (or the export `driver`) of a driver package. */
export interface Driver {
  /** Name of the driver in the configuration. */
  readonly name: string;
  /**
   * Schema of one entry of `providers`, including the common keys (see `providerSchema`). The descriptions in it become
   * the reference page.
   */
  readonly schema: JsonSchema;
  /**
   * Creates the configuration of a provider from its section, which has passed `schema`. Reports problems to `context`.
   */
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): ProviderConfig;
  /** Lets `nodepool init` write a first section. Absent: sections are written by hand. */
  readonly siteGuide?: SiteGuide | undefined;
  /** Creates a provider. Opens no connections; `Provider.start` does that. */
  getProvider(config: ProviderConfig): Provider;
}

/** Dependencies passed to a provider. */
export interface ProviderContext {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Runs and supervises background work. */
  readonly tasks: TaskSupervisor;
  /** Reports a remote call that has ended. */
  readonly onApiCall: (call: ApiCall) => void;
  /**
   * Reports a failed call that the provider repeats by itself, e.g. a listing or a deletion, so that the failure counts
   * when it happens. Absent in a builder.
   */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
  /**
   * Lists the instances at once, because the cloud has announced a change of them. Resolves once the listing is applied
   * to the records of the nodes. Rejects if the instances cannot be listed. Absent in a builder.
   */
  readonly checkInstances?: (() => Promise<void>) | undefined;
  /**
   * Called when the provider begins to list the instances for itself; a complete list is passed to the result, so that
   * it also shows which ready nodes have lost their instance. Absent in a builder.
   */
  readonly observeListing?: (() => (instances: readonly Instance[]) => void) | undefined;
  /** Maintains ready nodes for existing machines. Absent in a builder. */
  readonly nodeSupply?: NodeSupply | undefined;
  /** Checks the login of a machine. Absent in a builder. */
  readonly loginScan?: LoginScan | undefined;
  /** Requests and holds nodes of other labels. Absent in a builder. */
  readonly backingNodes?: OpenBackingNodes | undefined;
}

/** A completed remote call, for metrics (`nodepool.task.<provider>.<service>.<METHOD>.<operation>`). */
export interface ApiCall {
  readonly service: string;
  readonly method: string;
  readonly operation: string;
  readonly durationMs: number;
  /** Host that the call was sent to; absent if the driver does not tell. */
  readonly host?: string | undefined;
  /** HTTP status or error code; undefined if no response arrived. */
  readonly status: number | string | undefined;
  /** The log of the call, for its trace; absent if the driver does not tell. */
  readonly log?: Logger | undefined;
}

/** Events of nodes, reported to the provider that owns them. */
export interface ProviderNotifications {
  /** Reports that the record of a node of this provider was deleted. */
  nodeDeletedNotification?(node: Node): void;
}

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** A configured cloud. A changed configuration creates a new provider object. */
export interface Provider extends ProviderNotifications {
  readonly config: ProviderConfig;
  /** Present if the driver manages disk images. */
  readonly images?: ImageManager;

  /**
   * Starts the provider; called once, before any other method. A rejection is retried with back-off, and the provider
   * serves no requests until a start succeeds.
   */
  start(context: ProviderContext): Promise<void>;
  /** Stops accepting work and aborts work in progress, which is later resumed from its saved state. */
  stop(): void;
  /** Resolves once all work has ended after `stop`. */
  join(): Promise<void>;

  /**
   * Returns `ready` if nodes of the label can be created at the moment, otherwise the reason, e.g. a missing image.
   */
  labelReady(pool: string, label: string): Readiness;
  /**
   * Returns the reason why the pool can never have nodes with these labels at the same time; undefined if it may.
   * Called for each decision about a request. Absent: only the limits of the configuration and of the cloud decide.
   */
  shortage?(pool: string, labels: readonly string[]): string | undefined;
  /** Creates the handler of a request that a pool has accepted. */
  getRequestHandler(pool: string, request: RequestInfo): NodeRequestHandler;

  /**
   * Rejects with `InstanceFailedError` if the id of a launched instance now belongs to another instance. The launcher
   * calls it after the login, which takes time. Absent: the cloud never uses ids again.
   */
  checkInstance?(externalId: ExternalId, tags: InstanceTags, call: Call): Promise<void>;
  /** Starts deleting every cloud resource of a node. Rejects only if the deletion cannot be started. */
  cleanupNode(cleanup: NodeCleanup): Promise<void>;
  /**
   * Resolves once the cloud confirms that no resource of the node is left. Requires an earlier call of `cleanupNode`.
   * Rejects with the `DriverError` that stopped the deletion.
   */
  waitForNodeCleanup(nodeId: string): Promise<void>;
  /**
   * Lists resources that carry this provider's tags, asks `round` which of them are leaked, and deletes those.
   * `round` must be asked after the listing was complete, never before.
   */
  cleanupLeakedResources(round: LeakFilter, call: Call): Promise<void>;
  /**
   * Resolves with all instances of the account, including those that Nodepool did not create. Rejects rather than
   * returning a partial list.
   */
  listNodes(call: Call): Promise<readonly Instance[]>;

  /** Resolves with the total limits of the cloud, not with what is left of them. Absent: unlimited. */
  getQuotaLimits?(call: Call): Promise<QuotaInformation>;
  /**
   * Resolves with the resources that one node of the label needs. `machineType` is one of the label's `machineTypes`;
   * undefined if it has none. Absent: one instance.
   */
  getQuotaForLabel?(pool: string, label: string, call: Call, machineType?: string): Promise<QuotaInformation>;
  /** Resolves with the availability zones to choose from, in the pool's order. If there are none, the cloud chooses. */
  getAvailabilityZones?(pool: string, call: Call): Promise<readonly string[]>;
  /** Resolves with the last lines of the instance's console, which are logged if its login never responds. */
  getConsoleLog?(
    externalId: ExternalId,
    label: { readonly pool: string; readonly label: string },
    call: Call,
  ): Promise<string | undefined>;

  /**
   * Resolves with the lists of the cloud that a first configuration chooses from (`Driver.siteGuide`). Each has at most
   * a few hundred entries. Absent: the cloud has no lists.
   */
  describeSite?(call: Call): Promise<SiteDescription>;

  /** Returns the work in progress, for the stack dump. */
  inspect?(): readonly WorkInProgress[];
}

/** A launch or a deletion in progress. */
export interface WorkInProgress {
  readonly kind: 'create' | 'delete';
  readonly nodeId: string;
  readonly externalId: ExternalId | undefined;
  readonly state: string;
  readonly ageMs: number;
  /** Event that the work waits for, e.g. `call` or `listing`, and the milliseconds it has waited. */
  readonly waitingFor: string;
  readonly waitingMs: number;
}

/** The facts of a request that a driver may use, e.g. in templates of the configuration. */
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
  /** Reports that a ready node was allocated to the request instead of a new one. */
  nodeReusedNotification?(node: Node): void;
}

/** Launches the nodes that one provider contributes to a request. */
export interface NodeRequestHandler extends NodeRequestHandlerNotifications {
  /**
   * Creates one instance. Resolves once the cloud reports the instance as running with its addresses; the caller
   * verifies the login. Rejects with a `DriverError`; the caller then deletes the remains through `cleanupNode` and
   * retries with another call.
   */
  launch(launch: NodeLaunch): Promise<LaunchedInstance>;
  /** Returns true once every launch of this handler has succeeded or failed. */
  launchesComplete(): boolean;
  /** Returns true if this ready node may be used for the request. Default: always true. */
  checkReusableNode?(node: Node): boolean;
}

/**
 * Value of `NodeLaunch.saved` for an attempt whose process ended before it saved anything. A create call may already
 * have been sent.
 */
export const INTERRUPTED_LAUNCH: JsonValue = { state: 'interrupted' };

/** One attempt to create an instance. */
export interface NodeLaunch extends Call {
  readonly nodeId: string;
  readonly hostname: string;
  readonly pool: string;
  readonly label: string;
  /** Availability zone to use; undefined if the cloud chooses. */
  readonly availabilityZone: string | undefined;
  /** The machine type to use, one of the label's `machineTypes`; absent if the label has none. */
  readonly machineType?: string | undefined;
  /**
   * External id of the newest upload for a label with a `diskimage`. Undefined for other labels, which use the driver's
   * own cloud image.
   */
  readonly imageExternalId: ExternalId | undefined;
  /** Tags that every resource created for the node must carry from its creation. */
  readonly tags: InstanceTags;
  /**
   * State of this attempt saved by an earlier process (see `save`), or `INTERRUPTED_LAUNCH` if that process saved
   * nothing. Null for a new attempt. Unless null, the driver must first search for the attempt's tag over several
   * listings, because an earlier create call may take effect late.
   */
  readonly saved: JsonValue;
  /** External id saved by an earlier process, or null. */
  readonly externalId: ExternalId | null;
  /**
   * Saves the state of the launch with the node, so that another process can resume it. Resolves once the state is
   * durable. Must be called as soon as the external id is known, unless the launch ends in the same step.
   */
  save(progress: { readonly externalId: ExternalId | null; readonly machine: JsonValue }): Promise<void>;
  /** Reports a failed step that the driver repeats by itself, so that the failure counts when it happens. */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
}

/** Tags that identify a resource in the cloud, set at its creation. */
export interface InstanceTags {
  readonly nodepool_node_id: string;
  readonly nodepool_provider_name: string;
  readonly nodepool_pool_name: string;
  /** Id of the installation that owns the node's record. Node ids are sequences that repeat in every installation. */
  readonly nodepool_installation: string;
  /** Hexadecimal uuid of the launch attempt. */
  readonly nodepool_launch_attempt: string;
}

/** The facts of a launched instance that are written to the node's record. Undefined fields are unknown. */
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
  /**
   * Resources that the instance uses, e.g. `{cores, instances, ram}`. The label's need, see `getQuotaForLabel`, counts
   * for those that are missing.
   */
  readonly resources?: Resources | undefined;
  /** Machine type and market, for the cost of the node; absent if the cloud has no machine types. */
  readonly machine?: NodeMachine | undefined;
  /** Login settings for requestors that the label's configuration does not contain. */
  readonly connection?: Partial<Connection> | undefined;
  /** Host keys that the driver knows, each as `<type> <base64>`; the launcher's own scan replaces them. */
  readonly hostKeys?: readonly string[] | undefined;
  /** Defaults of the node's attributes; `node-attributes` of the pool override them key by key. */
  readonly attributes?: JsonObject | undefined;
  readonly driverData?: JsonValue;
  readonly slot?: number | undefined;
}

/** An instance as the cloud lists it. */
export interface Instance extends LaunchedInstance {
  /**
   * True if the instance runs and has its addresses. A ready node is not handed out while its instance is listed as not
   * ready, and is replaced if that lasts for minutes, e.g. because an operator has stopped the instance.
   */
  readonly ready: boolean;
  /** True if the instance is deleted or about to be; it no longer counts against the quota. */
  readonly deleted: boolean;
  /**
   * Reason why the instance can never become ready, e.g. because it is broken, preempted, evicted or being deleted;
   * absent otherwise. A ready node is replaced once its instance is listed as failed.
   */
  readonly failed?: string | undefined;
  /**
   * Present if the cloud takes the instance away or has done so, e.g. a spot instance, by an announcement or by a state
   * that has no other cause. The instance must also be `failed`: it never becomes ready again.
   */
  readonly reclaimed?: { readonly endsAt?: number | undefined } | undefined;
  /** Tags of the instance. Instances that this installation did not create lack its tags. */
  readonly tags: Readonly<Record<string, string>>;
}

/** A cloud resource that costs money or blocks other work: an instance, an address, a port, a volume, an image. */
export interface Resource {
  /** Kind of the resource, e.g. `instance` or `volume`; part of the metric `leaked.<kind>s`. */
  readonly kind: string;
  readonly externalId: ExternalId;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /**
   * Tags of further owners, if the driver cannot tell which of several owns the resource, e.g. which node of a call
   * that created several instances. Such a resource is leaked only if none of them has a record.
   */
  readonly otherOwners?: readonly Readonly<Record<string, string>>[];
}

/** Deletion of every cloud resource of a node. */
export interface NodeCleanup extends Call {
  readonly nodeId: string;
  readonly pool: string | null;
  /**
   * External id of the instance. If null, an instance may still exist: the one whose tags name this node, provider,
   * pool, launch attempt and installation. An instance that differs in one of them belongs to another owner.
   */
  readonly externalId: ExternalId | null;
  /**
   * Id of this installation. An instance without `nodepool_installation` belongs to the node if the other tags match.
   */
  readonly installation: string;
  /** Latest attempt in the record; null or empty if no instance was requested from the cloud. */
  readonly launchAttempt: string | null;
  /** Reports a failed attempt to delete an instance, which the driver repeats by itself. */
  readonly onFailedAttempt?: ((error: Error) => void) | undefined;
  /** Reports the cloud's description of a deletion that it has accepted and does not complete. */
  readonly onWaiting?: ((reason: string) => void) | undefined;
  readonly saved: JsonValue;
  save(progress: { readonly machine: JsonValue }): Promise<void>;
}

/** Decides which resources are leaked, based on the records. */
export interface LeakFilter {
  /**
   * Resolves with the resources that must be deleted, given a fresh listing. These carry the tags of this installation
   * and provider, belong to no node or upload in a fresh read, and were seen in an earlier round; their number per
   * round is limited. Logs each of them with the reason.
   */
  leaked(resources: readonly Resource[]): Promise<readonly Resource[]>;
  /** Calls the provider's `listNodes` and also uses the result for other checks. Absent: the provider calls it. */
  listInstances?(call: Call): Promise<readonly Instance[]>;
}
