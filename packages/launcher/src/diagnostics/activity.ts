/** What the parts of a launcher say of their work, for the stack dump and for explanations. */

import type { NodeState, Resources, WorkInProgress } from '@nodepool/core';

export interface ProviderActivity {
  readonly provider: string;
  readonly state: 'starting' | 'serving' | 'trouble';
  /** Why it is in trouble. */
  readonly reason: string | undefined;
  /** What the cloud allows, as far as it says so. */
  readonly limit: Resources;
  /** What the nodes of all pools use. */
  readonly used: Resources;
  readonly pools: readonly PoolActivity[];
  /** Ids of nodes that are being deleted. */
  readonly deletions: readonly string[];
  /** Machines of the driver. */
  readonly work: readonly WorkInProgress[];
}

export interface PoolActivity {
  readonly pool: string;
  /** What goes into `declined_by`. */
  readonly id: string;
  /** Requests that could be served, and are not yet. */
  readonly waiting: number;
  /** Of those, the one that is served next. */
  readonly next: string | undefined;
  /** Requests whose records are being written. */
  readonly accepting: number;
  /** Requests that are left alone for a while after a failure. */
  readonly deferred: number;
  /** Nothing is launched for a while: the cloud said that it has no room. */
  readonly outOfRoom: boolean;
  readonly limit: Resources;
  readonly used: Resources;
  readonly labels: readonly LabelActivity[];
  readonly requests: readonly RequestActivity[];
}

export interface LabelActivity {
  readonly label: string;
  /** Why it cannot be served at the moment; undefined: it can. */
  readonly obstacle: string | undefined;
}

/** A request in the hands of the pool. */
export interface RequestActivity {
  readonly request: string;
  /** Why the work on it ends early, if it does. */
  readonly ending: string | undefined;
  /** Lock directories that are held for it. */
  readonly locks: readonly string[];
  readonly nodes: readonly { readonly id: string; readonly label: string; readonly state: NodeState }[];
}
