/**
 * A node: what a requestor gets and what a launcher keeps in `/nodepool/nodes/<id>`.
 *
 * Field names are those of the znode's JSON; other programs read and write them (see `codec.ts` for unknown fields).
 */

import type { JsonObject, JsonValue } from './json.js';

export const NODE_STATES = [
  /** The record exists, nothing was started. */
  'init',
  'building',
  'testing',
  'ready',
  'in-use',
  'used',
  'hold',
  'deleting',
  'failed',
  /** The launch gave up for quota; not a failure, tried again. */
  'aborted',
  /** The cloud resource is gone, the record is about to be. */
  'deleted',
] as const;

export type NodeState = (typeof NODE_STATES)[number];

/** How the cloud names an instance: most clouds a string, some an object. */
export type ExternalId = string | JsonObject;

/** Amounts by name, e.g. `{cores: 4, instances: 1, ram: 8192}` (ram in MiB). */
export type Resources = Readonly<Record<string, number>>;

export interface NodeData {
  readonly state: NodeState;
  /** Unix seconds of the last change of `state`. */
  readonly state_time: number;
  readonly created_time: number | null;
  readonly provider: string | null;
  readonly pool: string | null;
  /** `id` of the pool component that launched it. */
  readonly launcher: string | null;
  /** Labels that the node can serve. */
  readonly type: readonly string[];
  /** Id of the request that it is allocated to. */
  readonly allocated_to: string | null;
  readonly external_id: ExternalId | null;
  readonly hostname: string | null;
  readonly cloud: string | null;
  readonly region: string | null;
  readonly az: string | null;
  readonly host_id: string | null;
  readonly interface_ip: string | null;
  readonly public_ipv4: string | null;
  readonly private_ipv4: string | null;
  readonly public_ipv6: string | null;
  readonly connection_type: string | null;
  /** A port, or for container-like clouds an object with credentials: never print it. */
  readonly connection_port: number | JsonObject | null;
  readonly username: string | null;
  readonly python_path: string | null;
  readonly shell_type: string | null;
  /** `<type> <base64>` each. */
  readonly host_keys: readonly string[];
  readonly image_id: string | null;
  readonly attributes: JsonObject | null;
  readonly resources: Resources | null;
  readonly slot: number | null;
  readonly driver_data: JsonValue;
  readonly tenant_name: string | null;
  readonly requestor: string | null;
  readonly comment: string | null;
  readonly hold_job: string | null;
  /** Seconds; requestors may write a string. */
  readonly hold_expiration: number | string | null;
  readonly user_data: JsonValue;
  /**
   * How far the launch or deletion in progress is, so that another process can go on with it. Ours; other programs
   * keep it as an unknown field or drop it, and then the instance is found by its tags.
   */
  readonly progress: NodeProgress | null;
}

/** The durable part of a launch or deletion in progress. */
export interface NodeProgress {
  readonly kind: 'launch' | 'deletion';
  /** Identity of this attempt in the cloud (tag `nodepool_launch_attempt`), uuid4 hex. New for every create call that may take effect. */
  readonly attempt: string;
  /** 1 for the first attempt. */
  readonly number: number;
  /** Unix seconds at which the first attempt started. */
  readonly started: number;
  /** The saved state machine (`StateMachine.save`); null when there is none. */
  readonly machine: JsonValue;
}

export interface Node extends NodeData {
  /** Ten-digit sequence. */
  readonly id: string;
}
