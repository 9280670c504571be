/**
 * The data of the status page, in sections that the launcher sends again whenever they change. Times are unix seconds.
 * Texts can come from any source: the launcher shortens them, and the page must show them as plain text only.
 */

/** All sections of the page. */
export interface StatusSections {
  readonly launcher: LauncherStatus;
  readonly nodes: NodesStatus;
  readonly history: NodeHistoryStatus;
  readonly requests: RequestsStatus;
  readonly providers: readonly ProviderStatus[];
  readonly images: readonly ImageStatus[];
  readonly components: readonly ComponentStatus[];
  readonly failures: readonly FailureStatus[];
}

/** A message of the stream, with the changed sections; or the answer to a poll, with all sections. */
export interface StatusMessage {
  /** Time at which the message was created, by the launcher's clock. */
  readonly time: number;
  readonly sections: Partial<StatusSections>;
}

export interface LauncherStatus {
  readonly hostname: string;
  readonly version: string;
  /** True once every provider serves its pools or is in trouble. */
  readonly ready: boolean;
  /** `connected`, `connecting`, `suspended` or `closed`. */
  readonly zookeeper: string;
  /** True while the launcher sees all records. */
  readonly complete: boolean;
  /** The first problems for which the changed configuration was refused. */
  readonly configurationProblems: readonly string[];
  /** Total number of problems. */
  readonly configurationProblemCount: number;
  /** The first of the records that cannot be read. */
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
  readonly unreadableCount: number;
}

/** A group of node states that the page shows as one. */
export type NodeGroup = 'building' | 'ready' | 'in use' | 'held' | 'leaving' | 'failed';
/** Numbers of nodes by group. */
export type GroupCounts = Readonly<Record<NodeGroup, number>>;

export interface NodesStatus {
  readonly total: number;
  readonly groups: GroupCounts;
}

/** Numbers of nodes over time. */
export interface NodeHistoryStatus {
  readonly groups: readonly NodeGroup[];
  /** Samples, oldest first; `counts` are in the order of `groups`. */
  readonly samples: readonly { readonly time: number; readonly counts: readonly number[] }[];
}

export interface RequestsStatus {
  /** Number of requests that no pool has accepted yet. */
  readonly waiting: number;
  /** Number of requests that a pool has accepted. */
  readonly pending: number;
  /** Creation time of the oldest waiting request. */
  readonly oldest: number | null;
  /** The first requests in the order of service. */
  readonly first: readonly RequestStatus[];
}

export interface RequestStatus {
  readonly id: string;
  readonly state: 'requested' | 'pending';
  readonly labels: readonly { readonly label: string; readonly count: number }[];
  readonly since: number;
  readonly requestor: string;
  /** The reason for the state of the request. */
  readonly reason: string;
}

/** The used amount of a resource and its limit; `null` if it is unlimited. */
export interface Usage {
  readonly resource: string;
  readonly used: number;
  readonly limit: number | null;
}

export interface ProviderStatus {
  readonly name: string;
  /** Null for a provider that only other launchers serve. */
  readonly driver: string | null;
  readonly driverVersion: string | null;
  /**
   * `elsewhere` means that only another launcher serves the provider; `gone` means that it has nodes and no launcher
   * serves it.
   */
  readonly state:
    'serving' | 'starting' | 'degraded' | 'unreachable' | 'misconfigured' | 'broken' | 'elsewhere' | 'gone';
  /** The reason why the provider is broken or in trouble. */
  readonly reason: string | null;
  readonly groups: GroupCounts;
  /** Use of the limits that the cloud reports. */
  readonly usage: readonly Usage[];
  readonly pools: readonly PoolStatus[];
}

export interface PoolStatus {
  readonly name: string;
  /** Hosts of the launchers that serve the pool. */
  readonly launchers: readonly string[];
  readonly labels: number;
  readonly usage: readonly Usage[];
  /** Number of requests that the pool could serve once it has capacity. */
  readonly waiting: number;
  /** Conditions that delay launches, e.g. that the cloud is full or the pool is paused. */
  readonly notes: readonly string[];
  /** Labels that cannot be served, with the reason. */
  readonly obstacles: readonly { readonly label: string; readonly reason: string }[];
}

export interface ImageStatus {
  readonly name: string;
  readonly paused: boolean;
  /** Time at which a build was requested; null if none is. */
  readonly requested: number | null;
  /** The latest builds, newest first. */
  readonly builds: readonly BuildStatus[];
  /** By provider: the upload in use and newer ones. */
  readonly uploads: readonly UploadStatus[];
}

export interface BuildStatus {
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly builder: string;
  readonly formats: readonly string[];
}

export interface UploadStatus {
  readonly provider: string;
  readonly state: string;
  readonly since: number;
  /** Progress in percent; null if unknown. */
  readonly progress: number | null;
}

/** A registered launcher or builder. */
export interface ComponentStatus {
  readonly kind: 'launcher' | 'builder';
  readonly hostname: string;
  readonly state: string;
  readonly version: string;
  readonly drivers: readonly { readonly name: string; readonly version: string }[];
}

/** A warning or an error in this launcher's log; repetitions are counted. */
export interface FailureStatus {
  readonly level: 'warning' | 'error';
  readonly message: string;
  readonly reason: string | null;
  readonly first: number;
  readonly last: number;
  readonly times: number;
  readonly provider: string | null;
  readonly pool: string | null;
  readonly label: string | null;
  /** Node of the last occurrence. */
  readonly node: string | null;
  readonly request: string | null;
}
