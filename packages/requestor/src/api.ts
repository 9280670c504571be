/** Types for programs that request nodes. */

import type { InterruptionKind, JsonObject, JsonValue, NodeState, RequestState } from '@nodepool/core';
import type { TransactionOp } from '@nodepool/zookeeper';

/** The nodes that a program wants. */
export interface RequestSpec {
  /** One node per label, in this order; repeats allowed. */
  readonly labels: readonly string[];
  /** 0 to 999; lower is served first. Default 200. */
  readonly priority?: number;
  /** Order among requests of equal priority; lower is served first. Default 0. */
  readonly relativePriority?: number;
  /** Tenant whose resource limits apply. Default: none. */
  readonly tenant?: string | null;
  /** Identifies the request in the logs of launchers. Default: 32 random hexadecimal digits. */
  readonly eventId?: string;
  /** Data of the program, which launchers do not change. Default null. */
  readonly data?: JsonValue;
  /** Only nodes of this provider, as long as it can serve the request. Default: any. */
  readonly provider?: string | null;
  /** If false, new nodes are launched instead of using ready ones. Default true. */
  readonly reuse?: boolean;
  /**
   * If false, the request is deleted when the ZooKeeper session of this program ends, so that a crash leaves nothing
   * behind. If true, it remains until `cancel` or `lock`, as Zuul's requests do, and a restarted program continues with
   * `Requestor.resume`. Default false.
   */
  readonly durable?: boolean;
}

/** Limits of a wait. */
export interface WaitOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds until the wait rejects with `RequestTimeoutError`. Default: no limit. */
  readonly timeoutMs?: number;
}

export interface LockOptions extends WaitOptions {
  /**
   * Name of the owner of a durable lease, e.g. `my-ci/scheduler`: the locks of the nodes survive the ZooKeeper session
   * and the process, and any process of the owner continues with `Requestor.adoptLease`. Processes with the same owner
   * must belong to the same program. Default: the locks end with the session.
   */
  readonly durable?: string;
}

export interface TakeOptions extends LockOptions {
  /** Data of the program in the records of the nodes. */
  readonly userData?: JsonValue;
  /**
   * Further operations of the transaction that locks the nodes of a durable lease, e.g. on a record of the program. If
   * one fails, `take` rejects with its error, and nothing is changed. Default: none.
   */
  readonly alongside?: readonly TransactionOp[];
}

export interface AdoptLeaseOptions extends WaitOptions {
  /** Labels for which the nodes were requested, in the order of the ids. Default: the first label of each node. */
  readonly labels?: readonly string[];
  /**
   * If false, processes that have adopted or locked the nodes before share the lease, and the first that returns it
   * ends it for all. Default true: they lose it.
   */
  readonly takeOver?: boolean;
}

/** The nodes of one request that an owner holds in durable leases. */
export interface HeldNodes {
  /** The request that the nodes were locked for, which does not exist any more. */
  readonly requestId: string | null;
  /** Ids of the nodes, ascending. */
  readonly nodes: readonly string[];
}

/** A request at one moment. */
export interface RequestProgress {
  readonly id: string;
  readonly state: RequestState;
  /** Ids of the nodes, in the order of the labels, once fulfilled. */
  readonly nodes: readonly string[];
  /** Ids of the pools that declined. */
  readonly declinedBy: readonly string[];
  /** The reasons why the request waits or why it failed, as sentences. */
  readonly reasons: readonly string[];
}

/** A node that is locked for this program. */
export interface LeasedNode {
  readonly id: string;
  /** The label of the request that this node is for. */
  readonly label: string;
  /** All labels that the node can serve. */
  readonly labels: readonly string[];
  readonly state: NodeState;
  readonly provider: string | null;
  readonly pool: string | null;
  readonly cloud: string | null;
  readonly region: string | null;
  readonly availabilityZone: string | null;
  readonly hostname: string | null;
  /** The address to connect to. */
  readonly address: string | null;
  readonly publicIpv4: string | null;
  readonly privateIpv4: string | null;
  readonly publicIpv6: string | null;
  /** `ssh`, `winrm`, … */
  readonly connectionType: string | null;
  /** A port; for containers an object with credentials, which must not be printed. */
  readonly connectionPort: number | JsonObject | null;
  readonly username: string | null;
  /** `<type> <base64>` each. */
  readonly hostKeys: readonly string[];
  readonly pythonPath: string | null;
  readonly shellType: string | null;
  /** `node-attributes` of the pool. */
  readonly attributes: JsonObject | null;
  /** Amounts by name, e.g. `{cores: 4, instances: 1, ram: 8192}` (ram in MiB). */
  readonly resources: Readonly<Record<string, number>> | null;
}

/**
 * The loss of the instance of a leased node. The node still belongs to this program, but its instance ends or has
 * ended.
 */
export interface Interruption {
  readonly nodeId: string;
  /**
   * `reclaimed`: the cloud takes the instance away, e.g. a spot instance. `failed`: the instance has failed or was
   * deleted. `missing`, `replaced`: the cloud does not list it any more. `stopped`: it has not run for minutes.
   */
  readonly kind: InterruptionKind;
  /** A part of a sentence, e.g. `its instance i-1 has failed: …`. */
  readonly reason: string;
  /** Time at which a launcher noticed the loss, in milliseconds since the epoch. */
  readonly noticedAt: number;
  /** Time at which the cloud ends the instance, in milliseconds since the epoch; undefined if it is not known. */
  readonly endsAt: number | undefined;
}

/** The result of a job. A job that was cancelled has none. */
export type JobResult = 'success' | 'failure';

export interface ReturnOptions {
  /** Default: unknown. */
  readonly result?: JobResult;
}

/** The reason and the duration of `Lease.hold`. */
export interface HoldOptions extends ReturnOptions {
  readonly comment?: string;
  readonly job?: string;
  /** Seconds after which launchers delete the nodes. Default: the launchers' `max-hold-age`. */
  readonly expirationSeconds?: number;
}
