/** The health of providers and of the offers of their pools, as data. */

/** Age at which a deletion counts as stuck (ms). */
export const STUCK_DELETION_MS = 300_000;

export type BreakerState = 'closed' | 'open' | 'half-open';

/** The cause for which a breaker is open. */
export type BreakerCause =
  | 'unreachable'
  | 'throttled'
  | 'auth'
  | 'certificate'
  | 'quota'
  | 'capacity'
  | 'refused'
  | 'configuration'
  | 'node'
  | 'slow'
  | 'interrupted';

/** Describes an open or half-open breaker, which admits nothing or one probe. Times are in ms since the epoch. */
export interface BreakerObstacle {
  readonly state: 'open' | 'half-open';
  readonly cause: BreakerCause;
  readonly reason: string;
  readonly since: number;
  /**
   * Time of the next probe. While the state is `half-open`: the time at which the breaker closes if no launch has
   * probed it. Undefined while a probe is running, and if the next launch is the probe whenever it comes.
   */
  readonly nextProbe: number | undefined;
  /** True while a call or a launch probes it. */
  readonly isProbing: boolean;
  /** Wait that the cloud has demanded, milliseconds; undefined if it has demanded none. */
  readonly demandedMs: number | undefined;
  /** Number of times in a row that the breaker opened for this cause. */
  readonly times: number;
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
  readonly name: string;
  readonly state: BreakerState;
  readonly failures: number;
  /** Undefined while the state is `closed`. */
  readonly obstacle: BreakerObstacle | undefined;
}

/** Trouble of a provider or of some of its offers, which keeps requests away from them. */
export interface ProviderTrouble {
  readonly cause: BreakerCause | 'start' | 'listing';
  /** The trouble and its reason, as a sentence without a period. */
  readonly reason: string;
  /** The reason without the time of the next probe, for records that are written seldom. */
  readonly fault: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Time of the next probe in milliseconds since the epoch; undefined if none is scheduled. */
  readonly nextProbe: number | undefined;
  /** The labels that cannot be launched; undefined if none of the provider can. */
  readonly labels: readonly string[] | undefined;
}

/** `unavailable`: the cloud answers, and demands that no calls are made. */
export type ProviderCondition = 'starting' | 'serving' | 'degraded' | 'unavailable' | 'unreachable' | 'misconfigured';
