/** The parts of the documents: rows, states and texts. */

/** The name of something that has a page. A pool is named `provider/pool`. */
export interface Ref {
  readonly kind: 'request' | 'node' | 'label' | 'provider' | 'pool' | 'image' | 'program';
  readonly id: string;
}

/** The member `launcher` of every document. */
export interface LauncherStatus {
  readonly hostname: string;
  readonly version: string;
  /** `connected`, `connecting`, `suspended` or `closed`. */
  readonly zookeeper: string;
  readonly nodes: number;
  readonly waiting: number;
  readonly problems: number;
  /** Number of scale sets of GitHub Actions that bridges serve. */
  readonly scaleSets: number;
}

/** The kinds of problems. Metrics, alerts and runbooks name them. */
export type ProblemKind =
  | 'zookeeper'
  | 'configuration'
  | 'different-configurations'
  | 'unreadable-records'
  | 'launcher-without-driver'
  | 'provider'
  | 'provider-unserved'
  | 'missing-instances'
  | 'failing-launches'
  | 'offers'
  | 'machines'
  | 'stranded-nodes'
  | 'damaged-backing-nodes'
  | 'stuck-deletions'
  | 'suspended-deletions'
  | 'label-without-pool'
  | 'label-not-ready'
  | 'failed-requests'
  | 'image-missing'
  | 'image-build'
  | 'image-upload'
  | 'image-rejected'
  | 'image-waits'
  | 'builders'
  | 'pool-limit'
  | 'pool-capacity';

/** A condition that needs attention: what is wrong, since when, the cause, its effect and a remedy. */
export interface Problem {
  readonly kind: ProblemKind;
  readonly severity: 'critical' | 'warning' | 'info';
  /** Stable identity of the problem while it lasts. */
  readonly key: string;
  readonly title: string;
  readonly subject: Ref | null;
  readonly since: number | null;
  /** The part of the system in which the cause lies. */
  readonly cause: 'cloud' | 'configuration' | 'limit' | 'image' | 'ZooKeeper' | 'driver' | 'Nodepool';
  readonly details: readonly string[];
  readonly effect: string | null;
  readonly remedy: string | null;
  /** Host of the launcher that sees the problem, if it is another one. */
  readonly launcher?: string;
}

export type Phase =
  | 'elsewhere'
  | 'limit'
  | 'order'
  | 'capacity'
  | 'image'
  | 'accepted'
  | 'creating'
  | 'booting'
  | 'login'
  | 'handover'
  | 'ready'
  | 'in-use'
  | 'held'
  | 'deleting';

/** A stretch of time of a request or a node. */
export interface TimelineSegment {
  readonly phase: Phase;
  readonly from: number;
  /** Null while the phase lasts. */
  readonly to: number | null;
  readonly detail: string | null;
  /** True for an attempt that failed. */
  readonly failed: boolean;
  /** The pool as `provider/pool`, or a host. */
  readonly by: string | null;
}

/** The reason for which a request waits now. */
export interface WaitStatus {
  /** `elsewhere`: only another launcher knows; `none`: no pool can serve the request. */
  readonly phase: 'limit' | 'order' | 'capacity' | 'image' | 'elsewhere' | 'none';
  readonly text: string;
  /** The pool that can serve it next, as `provider/pool`. */
  readonly pool: string | null;
  /** Host of the launcher that serves the pool. */
  readonly launcher: string | null;
  readonly since: number;
  readonly missing: string | null;
  readonly heldBy: readonly Ref[];
  /** Number of nodes that hold it as well and are not listed. */
  readonly heldByMore: number;
}

/** Durations in seconds; null without samples. */
export interface Quantiles {
  readonly count: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

export type NodeGroup = 'building' | 'ready' | 'in use' | 'held' | 'leaving' | 'failed';
export type GroupCounts = Readonly<Record<NodeGroup, number>>;

export interface NodesStatus {
  readonly total: number;
  readonly groups: GroupCounts;
}

export interface Usage {
  readonly resource: string;
  readonly used: number;
  /** Null if the resource is unlimited. */
  readonly limit: number | null;
}

export interface LabelStatus {
  readonly name: string;
  readonly ready: number;
  readonly building: number;
  readonly inUse: number;
  readonly total: number;
  readonly waiting: number;
  readonly oldest: number | null;
  /** Number of ready nodes that the label should have, and its reason; null if the label is not configured. */
  readonly readyTarget: number;
  readonly readyReason: string | null;
  /** Seconds from the creation of a node at which it is replaced, and before which it is kept; null: no limit. */
  readonly maxAge: number | null;
  readonly minRetention: number | null;
  readonly toNode: Quantiles;
  readonly pools: readonly string[];
  readonly reason: WaitStatus | null;
}

export interface RequestRow {
  readonly id: string;
  readonly state: 'requested' | 'pending' | 'fulfilled' | 'failed' | 'cancelled' | 'unseen';
  readonly labels: readonly { readonly label: string; readonly count: number }[];
  readonly created: number;
  readonly ended: number | null;
  readonly requestor: string;
  readonly tenant: string | null;
  readonly priority: number;
  readonly phase: Phase | null;
  readonly phaseSince: number | null;
  readonly reason: string;
  readonly pool: string | null;
}

export interface RequestCounts {
  readonly waiting: number;
  readonly progress: number;
  readonly failed: number;
  readonly fulfilled: number;
  readonly oldest: number | null;
}

/** Waiting requests with the same reason. */
export interface ReasonGroup {
  readonly phase: WaitStatus['phase'];
  readonly pool: string | null;
  readonly text: string;
  readonly count: number;
  readonly oldest: number;
  readonly labels: readonly string[];
}

export interface Paging {
  /** Number of rows that match the filters. */
  readonly matching: number;
  readonly offset: number;
  readonly limit: number;
}

/** The values of a filter with the number of rows that have them. */
export type Facet = readonly { readonly value: string; readonly count: number }[];

export interface DecisionStatus {
  readonly by: string;
  readonly decision: string;
  readonly reason: string | null;
  readonly first: number;
  readonly last: number;
  readonly times: number;
}

export interface NodeRow {
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly created: number | null;
  readonly labels: readonly string[];
  readonly provider: string | null;
  readonly pool: string | null;
  readonly az: string | null;
  readonly externalId: string | null;
  readonly hostname: string | null;
  readonly ip: string | null;
  readonly launcher: string | null;
  readonly request: string | null;
  readonly requestor: string | null;
  readonly tenant: string | null;
  readonly locked: boolean;
  readonly comment: string | null;
  readonly machineType: string | null;
  /** How the node has lost its instance, or will lose it; null for other nodes. */
  readonly interruption: string | null;
  /** Use of the slots of a backing node, e.g. `3 of 8 used`. */
  readonly slots: string | null;
  /** Id of the backing node that the node is on. */
  readonly backingNode: string | null;
  readonly slot: number | null;
}

export interface ComponentStatus {
  readonly kind: 'launcher' | 'builder';
  readonly hostname: string;
  readonly state: string;
  readonly version: string;
  /** Fingerprint of the configuration; null if it is not published. */
  readonly configuration: string | null;
  readonly drivers: readonly { readonly name: string; readonly version: string }[];
  readonly pools: readonly string[];
  /** True for the launcher that serves this page; the members below are known of it alone. */
  readonly self: boolean;
  readonly started: number | null;
  readonly eventLoopP99: number | null;
  readonly heapBytes: number | null;
  readonly zookeeper: {
    readonly state: string;
    readonly server: string | null;
    readonly latencyP50: number | null;
    readonly latencyP95: number | null;
    readonly since: number | null;
  } | null;
  readonly webUrl: string | null;
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
  readonly node: string | null;
  readonly request: string | null;
}
