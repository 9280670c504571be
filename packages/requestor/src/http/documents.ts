/** The documents of the gateway's HTTP API, version 1; `openapi.json` of `@nodepool/gateway` describes them. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import type { LeasedNode } from '../api.js';

export type LeaseState = 'waiting' | 'ready' | 'ending' | 'ended';
export type LeasePhase = 'queued' | 'launching' | 'handing-over' | 'in-use' | 'returning' | 'holding' | 'over';
export type LeaseOutcome = 'success' | 'failure' | 'cancelled' | 'unknown';

/** The lease to create. */
export interface NewLease {
  /** One node per label, in this order; repeats allowed. */
  readonly labels: readonly string[];
  /** Number of nodes of each label. Default 1. */
  readonly count?: number;
  readonly name?: string;
  /** 0 to 999, lower is served first. Default: that of the token. */
  readonly priority?: number;
  readonly tenant?: string;
  /** Seconds until the lease expires without renewal. */
  readonly lifetime?: number;
  readonly data?: JsonValue;
}

/** A lease. Times are ISO 8601 texts. */
export interface LeaseDocument {
  readonly id: string;
  readonly name: string | null;
  readonly state: LeaseState;
  readonly phase: LeasePhase;
  readonly labels: readonly string[];
  readonly priority: number;
  readonly tenant: string | null;
  readonly created_by: string;
  readonly data: JsonValue;
  /** Seconds. */
  readonly lifetime: number;
  /** Null once the lease is ending. */
  readonly expires: string | null;
  readonly reasons: readonly string[];
  readonly request: string | null;
  readonly nodes: readonly NodeDocument[];
  readonly times: { readonly created: string; readonly ready: string | null; readonly ended: string | null };
  readonly end: {
    readonly reason: 'released' | 'held' | 'expired' | 'failed' | 'lost' | 'cancelled';
    readonly outcome: LeaseOutcome | null;
    readonly comment: string | null;
    readonly at: string;
  } | null;
}

/** The fields of a node, named as in its record. Credentials, such as those of containers, are left out. */
export interface NodeFields {
  readonly id: string;
  readonly label: string;
  readonly labels: readonly string[];
  readonly provider: string | null;
  readonly pool: string | null;
  readonly cloud: string | null;
  readonly region: string | null;
  readonly az: string | null;
  readonly hostname: string | null;
  /** The address to connect to. */
  readonly address: string | null;
  readonly public_ipv4: string | null;
  readonly private_ipv4: string | null;
  readonly public_ipv6: string | null;
  readonly connection_type: string | null;
  /** Null for nodes that need credentials instead of a port. */
  readonly connection_port: number | null;
  readonly username: string | null;
  /** `<type> <base64>` each. */
  readonly host_keys: readonly string[];
  readonly python_path: string | null;
  readonly shell_type: string | null;
  readonly attributes: JsonObject | null;
  readonly resources: Readonly<Record<string, number>> | null;
}

export interface NodeDocument extends NodeFields {
  /** `lost`: do not use the node any longer. */
  readonly state: 'in-use' | 'lost' | 'held' | 'returned';
  /** Reason why the node is lost. */
  readonly reason: string | null;
  /** The loss of the machine of a node in use, as its cloud announces or lists it. */
  readonly interruption: InterruptionDocument | null;
}

export interface InterruptionDocument {
  /** `reclaimed`, `failed`, `missing`, `replaced` or `stopped`. */
  readonly kind: string;
  readonly reason: string;
  readonly noticed: string;
  /** Time at which the cloud ends the machine; null if it is not known. */
  readonly ends: string | null;
}

/** RFC 9457. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The last part of `type`, e.g. `quota`. */
  readonly code: string;
}

/** Returns the fields of a node for programs; of an unknown node, all null. */
export function nodeDocument(node: LeasedNode | undefined): NodeFields {
  return {
    id: node?.id ?? '',
    label: node?.label ?? '',
    labels: node?.labels ?? [],
    provider: node?.provider ?? null,
    pool: node?.pool ?? null,
    cloud: node?.cloud ?? null,
    region: node?.region ?? null,
    az: node?.availabilityZone ?? null,
    hostname: node?.hostname ?? null,
    address: node?.address ?? null,
    public_ipv4: node?.publicIpv4 ?? null,
    private_ipv4: node?.privateIpv4 ?? null,
    public_ipv6: node?.publicIpv6 ?? null,
    connection_type: node?.connectionType ?? null,
    connection_port: typeof node?.connectionPort === 'number' ? node.connectionPort : null,
    username: node?.username ?? null,
    host_keys: node?.hostKeys ?? [],
    python_path: node?.pythonPath ?? null,
    shell_type: node?.shellType ?? null,
    attributes: node?.attributes ?? null,
    resources: node?.resources ?? null,
  };
}
