/** Input of the launch stage. */

import type {
  DriverError,
  ImageUpload,
  LabelConfig,
  Logger,
  NodeRequest,
  NodeRequestHandler,
  Resources,
} from '@nodepool/core';
import type { LaunchPlace, Offer } from '@nodepool/status';
import type { NodeHandle } from '@nodepool/store';
import type { LaunchEvidence } from '../capacity/circuit-breaker.js';
import type { LaunchFault } from '../capacity/launch-fault.js';
import { machineTypesOf } from '../capacity/pool-offers.js';
import { hasWorkingReplica, isTakenElsewhere } from '../pool/other-pools.js';
import type { Pool } from '../pool/pool.js';
import { describeExcess, useOf } from '../quota/need.js';

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
  readonly pool: Pool;
  readonly driverHandler: NodeRequestHandler;
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  readonly request: NodeRequest;
  /** True if the request has no other node, so that the node may be launched in any zone. */
  readonly isAlone: boolean;
  /** Ids of pools that could not launch the nodes of the request before. */
  readonly abandonedBy: ReadonlySet<string>;
  /** True if an earlier process may have started this attempt. */
  readonly resumed: boolean;
  /** Aborts when the request ends early, or when the launcher has lost its locks. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Reports the progress or the failure of an attempt. */
  report(outcome: AttemptOutcome): void;
  /** Leaves the request with all its launches to another launcher in this pool. */
  leave(reason: string): void;
}

/** Returns where the node of the job is launched, for its timeline. */
export function placeOf({ pool, label }: Pick<LaunchJob, 'pool' | 'label'>): LaunchPlace {
  return { provider: pool.place.provider, pool: pool.place.pool, label: label.name };
}

/** Returns true if another pool can serve the request. */
export function canMoveOn({ request, pool, abandonedBy }: LaunchJob): boolean {
  return isTakenElsewhere(request, pool, abandonedBy);
}

/** Returns true if another launcher in this pool can continue the launch while this one cannot. */
export function canBeLeft({ request, pool }: LaunchJob): boolean {
  return hasWorkingReplica(request, pool);
}

/**
 * Returns another offer of the pool that needs no more than the node's recorded resources. The offer is in another zone
 * only if the request has no other node.
 */
export function otherOffer(job: LaunchJob, failed: Offer, isTried: (offer: Offer) => boolean): Offer | undefined {
  const { pool, isAlone } = job;
  if (!pool.context.capacity.offers) return undefined;
  return pool.alternative(failed, isAlone, (offer) => isTried(offer) || !isCovered(job, offer));
}

/** Returns true if the label has this offer, and a node with it needs no more than the recorded resources. */
export function fits(job: LaunchJob, offer: Offer): boolean {
  return machineTypesOf(job.label).includes(offer.machineType) && isCovered(job, offer);
}

/** Returns what a node with this offer needs. */
export function needOf({ pool, label }: LaunchJob, { machineType }: Offer): Resources {
  return pool.labels.need(label.name, machineType).toResources();
}

/** Returns true if a node with this offer needs no more than the resources in its record. */
function isCovered({ pool, node }: LaunchJob, { label, machineType }: Offer): boolean {
  return describeExcess('', useOf(node.node.resources), pool.labels.need(label, machineType)) === undefined;
}
