/**
 * What the status page shows, as the launcher sends it: in sections, each of which is sent again when it has changed. Times
 * are unix seconds. Texts come from anybody; they are shortened, and are to be shown as text only.
 */

/** What the page is drawn from. */
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

/** One message of the stream, and the answer to who asks without a stream (that has all sections). */
export interface StatusMessage {
  /** When it was made, by the launcher's clock. */
  readonly time: number;
  readonly sections: Partial<StatusSections>;
}

export interface LauncherStatus {
  readonly hostname: string;
  readonly version: string;
  /** Every provider has started. */
  readonly ready: boolean;
  /** `connected`, `connecting`, `suspended` or `closed`. */
  readonly zookeeper: string;
  /** The launcher sees all records. */
  readonly complete: boolean;
  /** Why the configuration file as it is now was refused. */
  readonly configurationProblems: readonly string[];
  /** How many there are, those that are not named included. */
  readonly configurationProblemCount: number;
  /** Records that cannot be read. */
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
  readonly unreadableCount: number;
}

/** States of nodes as the page tells them apart. */
export type NodeGroup = 'building' | 'ready' | 'in use' | 'held' | 'leaving' | 'failed';
/** Numbers of nodes. */
export type GroupCounts = Readonly<Record<NodeGroup, number>>;

export interface NodesStatus {
  readonly total: number;
  readonly groups: GroupCounts;
}

/** Numbers of nodes over time. */
export interface NodeHistoryStatus {
  readonly groups: readonly NodeGroup[];
  /** Oldest first; numbers in the order of `groups`. */
  readonly samples: readonly { readonly time: number; readonly counts: readonly number[] }[];
}

export interface RequestsStatus {
  /** Nobody works on them yet. */
  readonly waiting: number;
  /** Somebody works on them. */
  readonly pending: number;
  /** Since when the oldest waits. */
  readonly oldest: number | null;
  /** The first in the order of service. */
  readonly first: readonly RequestStatus[];
}

export interface RequestStatus {
  readonly id: string;
  readonly state: 'requested' | 'pending';
  readonly labels: readonly { readonly label: string; readonly count: number }[];
  readonly since: number;
  readonly requestor: string;
  /** Why it is where it is. */
  readonly reason: string;
}

/** An amount that is used of a limit; no limit: unlimited. */
export interface Usage {
  readonly resource: string;
  readonly used: number;
  readonly limit: number | null;
}

export interface ProviderStatus {
  readonly name: string;
  /** Unknown for a provider that only other launchers serve. */
  readonly driver: string | null;
  readonly driverVersion: string | null;
  /** `elsewhere`: another launcher serves it; `gone`: nobody does, and it has nodes. */
  readonly state: 'serving' | 'starting' | 'trouble' | 'broken' | 'elsewhere' | 'gone';
  /** Why it is broken. */
  readonly reason: string | null;
  readonly groups: GroupCounts;
  /** Of the limits of the cloud, as far as it told any. */
  readonly usage: readonly Usage[];
  readonly pools: readonly PoolStatus[];
}

export interface PoolStatus {
  readonly name: string;
  /** Hosts of the launchers that serve it. */
  readonly launchers: readonly string[];
  readonly labels: number;
  readonly usage: readonly Usage[];
  /** Requests that could be served, and for which there is no room. */
  readonly waiting: number;
  /** What keeps it from launching: that the cloud is full, that it is paused. */
  readonly notes: readonly string[];
  /** Labels that cannot be served, and why. */
  readonly obstacles: readonly { readonly label: string; readonly reason: string }[];
}

export interface ImageStatus {
  readonly name: string;
  readonly paused: boolean;
  /** Since when a build is asked for. */
  readonly requested: number | null;
  /** The newest first. */
  readonly builds: readonly BuildStatus[];
  /** By provider: what nodes use, and what is newer. */
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
  /** Percent. */
  readonly progress: number | null;
}

/** A process that is registered. */
export interface ComponentStatus {
  readonly kind: 'launcher' | 'builder';
  readonly hostname: string;
  readonly state: string;
  readonly version: string;
  readonly drivers: readonly { readonly name: string; readonly version: string }[];
}

/** A warning or an error of this launcher's log; the same one again is counted. */
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
  /** The last one's. */
  readonly node: string | null;
  readonly request: string | null;
}
