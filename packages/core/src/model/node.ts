/**
 * A node: allocated to requestors, and stored by launchers in `/nodepool/nodes/<id>`.
 *
 * Field names are those of the znode's JSON; other programs read and write them (see `codec.ts` for unknown fields).
 */

import type { JsonObject, JsonValue } from './json.js';

export const NODE_STATES = [
  /** The record exists, but no launch was started. */
  'init',
  'building',
  'testing',
  'ready',
  'in-use',
  'used',
  'hold',
  'deleting',
  'failed',
  /** The launch was aborted because of the quota. Not a failure; the launch is retried. */
  'aborted',
  /** The cloud resource is deleted; the record will be deleted next. */
  'deleted',
] as const;

export type NodeState = (typeof NODE_STATES)[number];

/** The states of a node whose launch has not ended. The Python Nodepool alone writes `testing`. */
export const LAUNCHING_STATES: readonly NodeState[] = ['init', 'building', 'testing'];

/** External id of an instance: a string in most clouds, an object in some. */
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
  /** `id` of the pool component that launched the node. */
  readonly launcher: string | null;
  /** Labels that the node can serve. */
  readonly type: readonly string[];
  /** Id of the request that the node is allocated to. */
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
  /** A port, or for container-based clouds an object with credentials, which must never be printed. */
  readonly connection_port: number | JsonObject | null;
  readonly username: string | null;
  readonly python_path: string | null;
  readonly shell_type: string | null;
  /** Host keys, each as `<type> <base64>`. */
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
   * Progress of a launch or deletion, so that another process can resume it. Other Nodepool implementations preserve it
   * as an unknown field or drop it; without it, the instance is found by its tags.
   */
  readonly progress: NodeProgress | null;
  /** Machine type of the offer that the node was launched with; null if its label has only one. */
  readonly machine_type: string | null;
  /**
   * The loss of the instance of a node in use or on hold. A launcher writes it without the lock of the node. Other
   * programs preserve it as an unknown field or drop it.
   */
  readonly interruption: NodeInterruption | null;
  /** The part of the node in the trial of an image; absent if there is none. */
  readonly trial?: NodeTrial | null;
  /** The machine of the instance, as its driver reports it; absent until the launch ends, and if it does not. */
  readonly machine?: NodeMachine | null;
  /** The project of `requestor` that the node is allocated to; absent if its request names none (`projectOf`). */
  readonly project?: string | null;
  /** The outcome of the job that used the node, which its requestor writes: `success` or `failure`. */
  readonly job_result?: string | null;
}

export const MARKETS = ['on-demand', 'spot'] as const;
export type Market = (typeof MARKETS)[number];

/** The machine of an instance, as its cloud charges for it. `type` is the cloud's name of the machine type. */
export interface NodeMachine {
  readonly type: string;
  /** Default: `on-demand`. */
  readonly market?: Market | undefined;
}

export const INTERRUPTION_KINDS = [
  /** The cloud takes or has taken the instance away, e.g. a spot instance. */
  'reclaimed',
  /** The instance has failed, was deleted, or is being deleted. */
  'failed',
  /** The cloud does not list the instance any more. */
  'missing',
  /** The cloud has given the id of the instance to an instance of another node. */
  'replaced',
  /** The instance exists and does not run. */
  'stopped',
] as const;

export type InterruptionKind = (typeof INTERRUPTION_KINDS)[number];

/** The loss of the instance of a node, as its cloud announces or lists it. */
export interface NodeInterruption {
  readonly kind: InterruptionKind;
  /** A part of a sentence, e.g. `its instance i-1 has failed: …`. */
  readonly reason: string;
  /** Unix seconds at which a launcher noticed the loss. */
  readonly time: number;
  /** Unix seconds at which the cloud ends the instance; null if that is not known. */
  readonly ends_at: number | null;
}

/** The part of a node in the trial of an image. Other Nodepool implementations preserve the field or drop it. */
export interface NodeTrial {
  /** Path of the upload that is on trial. */
  readonly upload: string;
  /** True if the node is launched from that upload, false if from the current one. */
  readonly candidate: boolean;
  /** The share of launches that used the candidate when the node was planned, 0 to 1. */
  readonly share: number;
  /** `ready` or `failed` once the first launch attempt has ended. */
  readonly launch: string | null;
  /** Duration of the launch, seconds; null if it has not succeeded. */
  readonly seconds: number | null;
}

/** The saved part of a launch or deletion in progress. */
export interface NodeProgress {
  readonly kind: 'launch' | 'deletion';
  /**
   * Identity of this attempt in the cloud (tag `nodepool_launch_attempt`), uuid4 hex. Every create call that may take
   * effect has a new one.
   */
  readonly attempt: string;
  /** 1 for the first attempt. */
  readonly number: number;
  /** Unix seconds at which the first attempt started. */
  readonly started: number;
  /** Machine type of this attempt (`NodeLaunch.machineType`); absent if the label has only one. */
  readonly machine_type?: string | undefined;
  /** State of the state machine (`StateMachine.save`); null if there is none. */
  readonly machine: JsonValue;
}

export interface Node extends NodeData {
  /** Ten-digit sequence. */
  readonly id: string;
}
