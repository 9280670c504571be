/** The state of providers and pools in the documents. */

import type { GroupCounts, Quantiles, Usage } from './model-parts.js';

export type ProviderState =
  'starting' | 'serving' | 'degraded' | 'unavailable' | 'unreachable' | 'misconfigured' | 'elsewhere' | 'gone';

export interface ProviderStatus {
  readonly name: string;
  readonly driver: string | null;
  readonly driverVersion: string | null;
  readonly state: ProviderState;
  readonly reason: string | null;
  /** Kind of the trouble behind the state, e.g. `auth`; null if it is not known. */
  readonly cause: string | null;
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
  /** Nodes whose instances the cloud does not list, if they are too many to be deleted. */
  readonly missingInstances: { readonly missing: number; readonly total: number; readonly since: number } | null;
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
  readonly obstacles: readonly {
    readonly label: string;
    readonly reason: string;
    readonly cause: 'provider' | 'image' | 'configuration' | 'limit';
  }[];
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
  /** Hostnames of the launchers that cannot use the machine, if any launcher can; otherwise empty. */
  readonly onlyFor: readonly string[];
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
