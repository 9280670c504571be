/** The health of providers and of the offers of their pools, as data. */

export type BreakerState = 'closed' | 'open' | 'half-open';

/** The cause for which a breaker is open. */
export type BreakerCause =
  'unreachable' | 'throttled' | 'auth' | 'quota' | 'capacity' | 'configuration' | 'node' | 'slow';

/**
 * Describes an open or half-open breaker, which admits nothing or only a probe. Times are in milliseconds since the
 * epoch.
 */
export interface BreakerObstacle {
  readonly state: 'open' | 'half-open';
  readonly cause: BreakerCause;
  readonly reason: string;
  readonly since: number;
  /** Undefined while a probe is running or could begin. */
  readonly nextProbe: number | undefined;
}

/** A zone and a machine type for a label. If one is undefined, the cloud or the driver chooses it. */
export interface Offer {
  readonly label: string;
  readonly zone: string | undefined;
  readonly machineType: string | undefined;
}

/** An offer and its health, for explanations and the status page. */
export interface OfferHealth extends Offer {
  readonly pool: string;
  /** The offer in words. */
  readonly name: string;
  readonly state: BreakerState;
  /** Consecutive failures. */
  readonly failures: number;
  /** Undefined while the state is `closed`. */
  readonly obstacle: BreakerObstacle | undefined;
}

export type ProviderCondition = 'starting' | 'serving' | 'degraded' | 'unreachable' | 'misconfigured';
