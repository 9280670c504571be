/**
 * What a driver on the state-machine framework implements. It says how to create, delete and list; the framework and the
 * launcher do locks, records, quota, retries, time-outs, clean-up of leaks, statistics. Implementation: `state-machine/`.
 */

import type { JsonObject, JsonValue } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';
import type { Driver, Instance, InstanceTags, ProviderContext, Readiness, RequestInfo, Resource } from './api.js';
import type { JsonSchema } from './json-schema.js';
import type { ImageManager } from './images.js';
import type { LabelConfig, PoolConfig, ProviderConfig, ProviderConfigContext } from './provider-config.js';
import type { QuotaInformation } from './quota.js';

/** Definition of a driver on this framework; `stateMachineDriver` makes a `Driver` of it. */
export interface StateMachineDriver<L extends LabelConfig, P extends ProviderConfig<L>> {
  readonly name: string;
  readonly schema: JsonSchema;
  getProviderConfig(section: JsonObject, context: ProviderConfigContext): P;
  getAdapter(config: P): Adapter<L>;
}

/** `stateMachineDriver(definition)` has this type. */
export type MakeStateMachineDriver = <L extends LabelConfig, P extends ProviderConfig<L>>(
  definition: StateMachineDriver<L, P>,
) => Driver;

/** A cloud, as the framework uses it. */
export interface Adapter<L extends LabelConfig = LabelConfig> {
  readonly images?: ImageManager;
  /** Least milliseconds between two listings while something waits for one. Default 1000. */
  readonly listIntervalMs?: number;

  start?(context: ProviderContext): Promise<void>;
  /** Releases connections; nothing is called afterwards. */
  stop?(): void | Promise<void>;
  /**
   * A machine that makes an instance. With `saved`, one that goes on where the saved one was; or, if that is
   * `INTERRUPTED_LAUNCH`, one that first looks for what an earlier machine may have made (`attemptLookup`), and if there
   * is nothing fails with a `transient` error whose outcome is `not-applied`.
   */
  getCreateStateMachine(request: CreateRequest<L>, saved: JsonValue): StateMachine;
  /** A machine that removes an instance and all that was made with it. */
  getDeleteStateMachine(externalId: ExternalId, saved: JsonValue, log: Call['log']): StateMachine;
  /** All instances of the account, all pages; rejected rather than incomplete. */
  listInstances(call: Call): Promise<readonly Instance[]>;
  /** Everything else that could be left behind, and the instances. */
  listResources(call: Call): Promise<readonly Resource[]>;
  deleteResource(resource: Resource, call: Call): Promise<void>;
  /**
   * Removes what carries no tags and yet is certainly garbage, by rules of the driver's own (e.g. ports of instances that are gone).
   * Called in every clean-up round, after what was leaked is deleted.
   */
  cleanUpUntagged?(call: Call): Promise<void>;
  getQuotaLimits?(call: Call): Promise<QuotaInformation>;
  getQuotaForLabel?(label: L, call: Call): Promise<QuotaInformation>;
  getAvailabilityZones?(pool: PoolConfig<L>, call: Call): Promise<readonly string[]>;
  labelReady?(label: L): Readiness;
  getConsoleLog?(externalId: ExternalId, label: L, call: Call): Promise<string | undefined>;
}

/** What an instance shall be. */
export interface CreateRequest<L extends LabelConfig = LabelConfig> {
  readonly hostname: string;
  readonly label: L;
  readonly pool: PoolConfig<L>;
  readonly availabilityZone: string | undefined;
  readonly imageExternalId: ExternalId | undefined;
  /** To be put on every resource at its creation. `nodepool_launch_attempt` is the identity to look for when the outcome of a call is unknown. */
  readonly tags: InstanceTags;
  readonly request: RequestInfo;
  /** External id that was saved with the node by an earlier process, or null. */
  readonly externalId: ExternalId | null;
}

/** What a machine is advanced with. */
export interface MachineCall extends Call {
  /** The latest listing of the provider, if there is one yet. */
  readonly listing: Listing | undefined;
}

/** A complete list of instances. */
export interface Listing {
  /** Grows with each listing; a listing was asked for after the end of the one before. */
  readonly round: number;
  /** `Clock.monotonic` milliseconds at which it was asked for: what happened before is in it (as far as the cloud is consistent). */
  readonly askedAt: number;
  byExternalId(externalId: ExternalId): Instance | undefined;
  /** Instances with that tag, e.g. of a launch attempt. */
  byTag(tag: string, value: string): readonly Instance[];
}

/** What a machine wants next. */
export type Advance =
  /** A call of its own is under way: advance it when this settles, well or not (the machine reads the result itself). */
  | { readonly next: 'call'; readonly settled: Promise<unknown> }
  /** Advance it with a listing that is asked for from now on. */
  | { readonly next: 'listing' }
  /** Advance it after so many milliseconds. */
  | { readonly next: 'delay'; readonly ms: number }
  /** The work is done. A creation gives its instance, ready. */
  | { readonly next: 'complete'; readonly instance?: Instance };

/**
 * Steps through the creation or the deletion of an instance. `advance` starts or checks the next step and returns at
 * once: it never waits for the cloud. It throws a `DriverError` when the work has failed. A machine can be saved after
 * any step, and made again from that, by another process; a call that was under way then has an unknown outcome, so the
 * machine looks for its effect before it repeats it.
 */
export interface StateMachine {
  /** `start` at first; then names of the machine's own. For logs and the stack dump. */
  readonly state: string;
  /** Set as soon as it is known. */
  readonly externalId: ExternalId | undefined;
  readonly complete: boolean;
  advance(call: MachineCall): Advance;
  save(): JsonValue;
}
