/** The current work of a launcher's providers and pools, for the stack dump and for explanations. */

import type { NodeState, Resources, WorkInProgress } from '@nodepool/core';
import type { OfferHealth, ProviderCondition, ProviderTrouble } from './health.js';

export interface ProviderActivity {
  readonly provider: string;
  readonly state: ProviderCondition;
  /** The reason for its state; undefined in the states `starting` and `serving`. */
  readonly reason: string | undefined;
  /** The trouble behind the state; undefined in the states `starting` and `serving`. */
  readonly trouble?: ProviderTrouble | undefined;
  /** Milliseconds since the epoch at which the state began. */
  readonly since: number;
  /** Milliseconds since the epoch at which the last trouble ended; undefined if there was none. */
  readonly recoveredAt?: number | undefined;
  /** The offers of its pools that were used or have failed since the launcher started. */
  readonly offers: readonly OfferHealth[];
  /** Limits that the cloud reports; a resource without a reported limit is omitted. */
  readonly limit: Resources;
  /** Resources that the nodes of all pools use. */
  readonly used: Resources;
  /** Nodes whose instances the cloud does not list, if they are too many to be deleted. */
  readonly missingInstances: MissingInstances | undefined;
  readonly pools: readonly PoolActivity[];
  readonly deletions: readonly string[];
  /** Creations and deletions of machines that the driver works on. */
  readonly work: readonly WorkInProgress[];
}

/** Nodes whose instances the latest listing lacks. */
export interface MissingInstances {
  readonly missing: number;
  /** Number of nodes with an instance. */
  readonly total: number;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** The parts of a provider's activity that cost little, whatever the number of its pools and labels. */
export type ProviderSummary = Pick<ProviderActivity, 'provider' | 'state' | 'reason' | 'limit' | 'used'>;

export interface PoolActivity {
  readonly pool: string;
  /** The pool's id, as in `declined_by`. */
  readonly id: string;
  /** Number of requests that the pool could serve and has not accepted yet. */
  readonly waiting: number;
  /** Id of the waiting request that is served next. */
  readonly next: string | undefined;
  /** Number of requests whose records are being written. */
  readonly accepting: number;
  /** Number of requests whose retry is delayed after a failure. */
  readonly deferred: number;
  /** True while launches pause because the cloud reported that it is out of capacity. */
  readonly outOfCapacity: boolean;
  readonly limit: Resources;
  readonly used: Resources;
  readonly labels: readonly LabelActivity[];
  readonly requests: readonly RequestActivity[];
}

export interface LabelActivity {
  readonly label: string;
  /** The reason why the label cannot be served at the moment; undefined if it can be served. */
  readonly obstacle: string | undefined;
  /**
   * The part of the system that must change: the provider, a disk image, the configuration or the cloud's resources
   * that it names, or a limit that the label exceeds.
   */
  readonly cause: 'provider' | 'image' | 'configuration' | 'limit' | undefined;
}

/** The place of a waiting request in its class: requests with the same needs that the same pools can serve. */
export interface QueuePosition {
  /** Id of the first request of the class, about which pools decide. */
  readonly first: string;
  /** Number of requests of the class that are served before it. */
  readonly ahead: number;
  /** Place among all waiting requests of the launcher, from 1; absent while only the priorities of requests count. */
  readonly place?: number;
  /** The place with its reason, e.g. `3rd: tenant b has 12 % of 25 %`; absent like `place`. */
  readonly order?: string;
}

export interface RequestActivity {
  readonly request: string;
  /** The reason why the work on the request ends early; undefined if it continues. */
  readonly ending: string | undefined;
  /** Paths of the lock directories that are held for the request. */
  readonly locks: readonly string[];
  readonly nodes: readonly { readonly id: string; readonly label: string; readonly state: NodeState }[];
}

/** Adds the requests and the work of a retired provider to those of its successor, if there is one. */
export function withRetired(present: readonly ProviderActivity[], retired: ProviderActivity): ProviderActivity[] {
  const successor = present.find(({ provider }) => provider === retired.provider);
  if (successor === undefined) return [...present, retired];
  const requestsOf = (name: string): readonly RequestActivity[] =>
    retired.pools.find(({ pool }) => pool === name)?.requests ?? [];
  const kept = successor.pools.map((pool) => ({ ...pool, requests: [...pool.requests, ...requestsOf(pool.pool)] }));
  const removed = retired.pools.filter(({ pool }) => !successor.pools.some((each) => each.pool === pool));
  const work = [...successor.work, ...retired.work];
  return present.map((each) => (each === successor ? { ...each, work, pools: [...kept, ...removed] } : each));
}
