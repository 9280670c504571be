/**
 * The documents of the status page: one per view, with members that the launcher sends again whenever they change.
 * Times are unix seconds, durations are seconds. Texts can come from any source: the launcher shortens them, and the
 * page must show them as plain text only.
 */

import type { JobLink } from './model-github.js';
import type { HistoryStatus, LabelHistory, ProviderHistory } from './model-history.js';
import type { ImageStatus } from './model-images.js';
import type {
  ComponentStatus,
  DecisionStatus,
  Facet,
  FailureStatus,
  LabelStatus,
  NodeRow,
  NodesStatus,
  Paging,
  Problem,
  Quantiles,
  ReasonGroup,
  RequestCounts,
  RequestRow,
  TimelineSegment,
  WaitStatus,
} from './model-parts.js';
import type { ProviderStatus } from './model-providers.js';

export type * from './model-github.js';
export type * from './model-history.js';
export type * from './model-images.js';
export type * from './model-parts.js';
export type * from './model-providers.js';

/** A message of the stream, with the changed members of the view's document, or the complete document. */
export interface StatusMessage {
  /** Time at which the message was created, by the launcher's clock. */
  readonly time: number;
  readonly sections: Readonly<Record<string, unknown>>;
}

export interface OverviewDocument {
  readonly problems: readonly Problem[];
  readonly nodes: NodesStatus;
  readonly requests: RequestCounts;
  readonly reasons: readonly ReasonGroup[];
  readonly toNode: Quantiles;
  readonly history: HistoryStatus;
  readonly providers: readonly ProviderStatus[];
  readonly labels: readonly LabelStatus[];
  readonly failures: readonly FailureStatus[];
  /** Null if no price is configured. */
  readonly costs: CostStatus | null;
}

/** The greatest costs, by label and provider, and by tenant and project. */
export interface CostStatus {
  readonly labels: readonly CostRow[];
  readonly owners: readonly CostRow[];
}

export interface CostRow {
  /** Label or tenant. */
  readonly name: string;
  /** Provider or project. */
  readonly of: string;
  readonly currency: string;
  /** Present cost per hour of nodes in use, of idle ones, and of launches and deletions. */
  readonly inUse: number;
  readonly idle: number;
  readonly overhead: number;
  /** Cost of the last day. */
  readonly day: number;
}

export interface LabelsDocument {
  readonly labels: readonly LabelStatus[];
}

export interface LabelDocument {
  readonly label: LabelStatus | null;
  readonly poolAnswers: readonly PoolAnswer[];
  readonly requests: readonly RequestRow[];
  readonly decisions: readonly DecisionStatus[];
  readonly history: LabelHistory;
}

export interface PoolAnswer {
  readonly pool: string;
  readonly launcher: string;
  readonly says: string;
}

export interface ProvidersDocument {
  readonly providers: readonly ProviderStatus[];
}

export interface ProviderDocument {
  readonly provider: ProviderStatus | null;
  readonly requests: readonly RequestRow[];
  readonly history: ProviderHistory;
}

export interface RequestsDocument {
  readonly counts: RequestCounts;
  readonly reasons: readonly ReasonGroup[];
  readonly facets: { readonly label: Facet; readonly pool: Facet; readonly requestor: Facet };
  readonly paging: Paging;
  readonly rows: readonly RequestRow[];
}

export interface RequestDocument {
  readonly request: RequestRow | null;
  readonly summary: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** The job of GitHub Actions that the request is for. */
  readonly job: JobLink | null;
  /** The reason in the pool that will probably serve a waiting request first. */
  readonly reason: WaitStatus | null;
  /** The reasons in all pools that can serve it, most likely pool first. */
  readonly reasons: readonly WaitStatus[];
  readonly timeline: readonly TimelineSegment[];
  readonly attempts: readonly AttemptStatus[];
  /** Its nodes, with `node` null for those that are deleted. */
  readonly nodes: readonly {
    readonly id: string;
    readonly node: NodeRow | null;
    readonly timeline: readonly TimelineSegment[];
  }[];
  readonly poolAnswers: readonly PoolAnswer[];
  readonly decisions: readonly DecisionStatus[];
}

export interface AttemptStatus {
  readonly node: string;
  /** 1 for the first attempt. */
  readonly number: number;
  /** The pool as `provider/pool`. */
  readonly pool: string;
  readonly label: string;
  /** The offer in words: label, machine type, zone. */
  readonly offer: string;
  readonly ended: number;
  /** Null if the node became ready. */
  readonly error: { readonly code: string; readonly text: string } | null;
}

export interface NodesDocument {
  readonly counts: NodesStatus;
  readonly facets: { readonly state: Facet; readonly provider: Facet; readonly label: Facet };
  readonly paging: Paging;
  readonly rows: readonly NodeRow[];
}

export interface NodeDocument {
  readonly node: NodeRow | null;
  readonly summary: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** The job of GitHub Actions that the node is for. */
  readonly job: JobLink | null;
  readonly timeline: readonly TimelineSegment[];
  readonly decisions: readonly DecisionStatus[];
}

export interface ImagesDocument {
  readonly images: readonly ImageStatus[];
}

export interface ImageDocument {
  readonly image: ImageStatus | null;
}

export interface ProgramsDocument {
  readonly components: readonly ComponentStatus[];
}
