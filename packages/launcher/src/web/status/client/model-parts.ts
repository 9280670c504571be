/** The parts of the documents in `model.ts`: rows, states and histories. */

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
  /** Numbers for the navigation. */
  readonly nodes: number;
  readonly waiting: number;
  readonly problems: number;
}

/** A condition that needs attention: what is wrong, since when, the cause, its effect and a remedy. */
export interface Problem {
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
export interface WaitReason {
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

export type ProviderState =
  'starting' | 'serving' | 'degraded' | 'unreachable' | 'misconfigured' | 'elsewhere' | 'gone';

export interface ProviderStatus {
  readonly name: string;
  readonly driver: string | null;
  readonly driverVersion: string | null;
  readonly state: ProviderState;
  readonly reason: string | null;
  readonly since: number | null;
  /** Launches of the last window. */
  readonly launches: { readonly windowSeconds: number; readonly started: number; readonly failed: number } | null;
  readonly lastError: { readonly text: string; readonly time: number; readonly code: string | null } | null;
  readonly failures: readonly {
    readonly code: string;
    readonly count: number;
    readonly text: string;
    readonly last: number;
  }[];
  readonly groups: GroupCounts;
  readonly usage: readonly Usage[];
  readonly api: {
    readonly windowSeconds: number;
    readonly calls: number;
    readonly failed: number;
    readonly throttled: number;
    readonly p50: number | null;
    readonly p95: number | null;
  } | null;
  readonly toNode: Quantiles;
  readonly pools: readonly PoolStatus[];
}

export interface PoolStatus {
  readonly name: string;
  readonly launchers: readonly string[];
  readonly labels: readonly string[];
  readonly usage: readonly Usage[];
  readonly waiting: number;
  readonly deferred: number;
  readonly paused: boolean;
  readonly outOfCapacity: boolean;
  readonly obstacles: readonly { readonly label: string; readonly reason: string }[];
  readonly offers: readonly OfferStatus[];
  /** Supplied machines that cannot be used at the moment. */
  readonly outOfService: readonly MachineStatus[];
}

export interface MachineStatus {
  /** Name, port and user. */
  readonly machine: string;
  readonly labels: readonly string[];
  /** Number of nodes that the machine provides. */
  readonly slots: number;
  readonly reason: string;
  readonly since: number;
}

/** The health of an offer, e.g. a flavor in a zone. */
export interface OfferStatus {
  readonly name: string;
  readonly state: 'closed' | 'half-open' | 'open';
  readonly reason: string | null;
  readonly since: number | null;
  readonly nextProbe: number | null;
  readonly failures: number;
}

export interface LabelStatus {
  readonly name: string;
  readonly ready: number;
  readonly building: number;
  readonly inUse: number;
  readonly total: number;
  readonly waiting: number;
  readonly oldest: number | null;
  readonly minReady: number;
  readonly toNode: Quantiles;
  readonly pools: readonly string[];
  readonly reason: WaitReason | null;
}

export interface RequestRow {
  readonly id: string;
  readonly state: 'requested' | 'pending' | 'fulfilled' | 'failed' | 'cancelled';
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
  readonly phase: WaitReason['phase'];
  readonly pool: string | null;
  readonly text: string;
  readonly count: number;
  readonly oldest: number;
  readonly labels: readonly string[];
}

/** A page of a list. */
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
}

/** Values over a day, oldest first. */
export interface HistoryStatus {
  /** Seconds between two samples. */
  readonly step: number;
  readonly samples: readonly HistorySample[];
  readonly events: readonly {
    readonly time: number;
    readonly text: string;
    readonly subject: Ref | null;
  }[];
  /** False if the history is kept in memory only. */
  readonly persisted: boolean;
  readonly since: number;
}

export interface HistorySample {
  readonly time: number;
  /** Numbers of nodes in the order of `NODE_GROUPS`. */
  readonly nodes: readonly number[];
  readonly waiting: number;
  /** Launches that ended and launches that failed since the sample before. */
  readonly launches: number;
  readonly failures: number;
  /** Requests that ended since the sample before. */
  readonly fulfilled: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Time to node in seconds; null without fulfilled requests. */
  readonly p50: number | null;
  readonly p95: number | null;
}

/** Values of one label over a day, oldest first; a step without any value is omitted. */
export type LabelHistory = readonly {
  readonly time: number;
  readonly waiting: number;
  readonly fulfilled: number;
  readonly failed: number;
  readonly p50: number | null;
  readonly p95: number | null;
}[];

/** Values of one provider over a day, oldest first; a step without any value is omitted. */
export type ProviderHistory = readonly {
  readonly time: number;
  /** Instances in use, and their limit. */
  readonly used: number;
  readonly limit: number | null;
  readonly launches: number;
  readonly failures: number;
  readonly calls: number;
  readonly failedCalls: number;
  readonly throttled: number;
  /** Mean duration of a call in seconds. */
  readonly latency: number | null;
}[];

export interface BuildStatus {
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly builder: string;
  readonly formats: readonly string[];
  readonly failure: string | null;
  readonly duration: number | null;
}

export interface UploadStatus {
  readonly provider: string;
  readonly build: string;
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly progress: number | null;
  readonly externalName: string | null;
  readonly failure: string | null;
}

export interface ImageStatus {
  readonly name: string;
  readonly paused: boolean;
  readonly requested: number | null;
  readonly builds: readonly BuildStatus[];
  readonly uploads: readonly UploadStatus[];
  /** The last failed build, even if a newer one succeeded. */
  readonly lastFailure: {
    readonly text: string;
    readonly time: number;
    /** Path of the log on the host of the builder. */
    readonly log: string | null;
    readonly builder: string | null;
  } | null;
  readonly labels: readonly string[];
}

export interface ComponentStatus {
  readonly kind: 'launcher' | 'builder';
  readonly hostname: string;
  readonly state: string;
  readonly version: string;
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
