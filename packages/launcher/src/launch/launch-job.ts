/** Input of the launch stage. */

import type {
  DriverError,
  ImageUpload,
  LabelConfig,
  Logger,
  NodeRequestHandler,
  PoolConfig,
  Provider,
  Resources,
} from '@nodepool/core';
import type { TimedLaunch, WatchedLaunch } from '../capacity/slow-launches.js';
import type { StrandedLaunch } from '../capacity/stranded-launches.js';
import type { Offer } from '../diagnostics/health.js';
import type { LaunchEvidence } from '../capacity/circuit-breaker.js';
import type { LaunchFault } from '../capacity/launch-fault.js';
import type { NodeHandle } from '@nodepool/store';
import type { LaunchPlace } from '../diagnostics/timeline/timeline-recorder.js';
import type { Shortfall } from '../quota/quota-scope.js';

/** Facts about a launch attempt that the health of its offer depends on. */
export interface AttemptFacts {
  readonly offer: Offer;
  /** `Clock.monotonic` milliseconds. */
  readonly startedAt: number;
}

/** Outcomes of launch attempts. */
export type AttemptOutcome =
  /** The attempt has reached this evidence. `isLate`: it took longer than usual. */
  | {
      readonly kind: 'reached';
      readonly attempt: AttemptFacts;
      readonly evidence: LaunchEvidence;
      readonly isLate?: boolean;
    }
  /** `retrying`: a step of the attempt has failed, which the driver repeats. */
  | {
      readonly kind: 'attempt-failed' | 'retrying';
      readonly attempt: AttemptFacts;
      readonly fault: LaunchFault;
      readonly failure: DriverError;
    };

/** A node to launch. Its record is locked and holds the identity of the attempt (`progress`). */
export interface LaunchJob {
  readonly node: NodeHandle;
  readonly provider: Provider;
  readonly driverHandler: NodeRequestHandler;
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  /** The requestor of the request, for metrics. */
  readonly requestor: string | null;
  /** True if an earlier process may have started this attempt. */
  readonly resumed: boolean;
  /** Aborts when the request ends early, or when the launcher has lost its locks. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Resolves with the limit that another instance of the node would exceed, counting all records up to this id. */
  retryShortfall(lastId: string): Promise<Shortfall | undefined>;
  /** Returns true if another pool can serve the request. */
  canMoveOn(): boolean;
  /**
   * Returns another offer of the pool that needs no more than the node's recorded resources. The offer is in another
   * zone only if the request has no other node.
   */
  alternative(failed: Offer, isTried: (offer: Offer) => boolean): Offer | undefined;
  /** Returns true if the breaker of the offer, or of the provider if no offer is given, admits a launch now. */
  admits(offer?: Offer): boolean;
  /** Returns true if the label has this offer, and a node with it needs no more than the recorded resources. */
  fits(offer: Offer): boolean;
  /** Returns what a node with this offer needs. */
  needOf(offer: Offer): Resources;
  /** Starts measuring an attempt with this offer, and abandons it if it is slow. */
  watch(offer: Offer, attempt: WatchedLaunch): TimedLaunch;
  /**
   * Abandons an attempt without an instance if its provider is in trouble, and one that the cloud refuses, until the
   * returned function is called.
   */
  watchProvider(attempt: StrandedLaunch): () => void;
  /** Reports the progress or the failure of an attempt. */
  report(outcome: AttemptOutcome): void;
}

/** Returns where the node of the job is launched, for its timeline. */
export function placeOf({ provider, pool, label }: Pick<LaunchJob, 'provider' | 'pool' | 'label'>): LaunchPlace {
  return { provider: provider.config.name, pool: pool.name, label: label.name };
}
