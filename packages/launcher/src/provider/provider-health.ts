/**
 * The state of a provider, derived from the results of its calls. A circuit breaker keeps requests away while its API
 * fails, throttles or rejects the credentials; each offer of its pools has another breaker. While nothing is launched,
 * listings show if the cloud can be reached.
 */

import type { Clock, DriverError, Logger, Metrics, RandomSource, Timer } from '@nodepool/core';
import { CircuitBreaker, type BreakerFailure, type LaunchEvidence } from '../capacity/circuit-breaker.js';
import type { BreakerCause, BreakerState, OfferHealth, ProviderCondition } from '../diagnostics/health.js';
import { describeObstacle } from '../capacity/describe-obstacle.js';
import { nameOf, STATE_VALUES, type PoolOffers } from '../capacity/pool-offers.js';
import { BREAKER_STATES, BREAKER_TRANSITIONS } from '../diagnostics/metrics/launcher-metrics.js';

/** Time after which a provider that has not started counts as failing, milliseconds. */
const SLOW_START_MS = 30_000;
/** Number of consecutive failed listings after which the cloud counts as unreachable. */
const FAILED_LISTINGS = 2;

export interface ProviderState {
  readonly state: ProviderCondition;
  /** Undefined in the states `starting` and `serving`. */
  readonly reason: string | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** A state without the time of its last change. */
type StateWithoutTime = Pick<ProviderState, 'state' | 'reason'>;

const CONDITIONS: Partial<Readonly<Record<BreakerCause, ProviderCondition>>> = {
  auth: 'misconfigured',
  configuration: 'misconfigured',
  unreachable: 'unreachable',
};

export interface HealthEnvironment {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export class ProviderHealth {
  readonly breaker: CircuitBreaker;
  private readonly pools: PoolOffers[] = [];
  private serving = false;
  /** The reason why the start fails, if it does. */
  private start: StateWithoutTime | undefined;
  /** Number of consecutive failed listings, and the time of the first of them in milliseconds since the epoch. */
  private listings = { failed: 0, since: 0 };
  /** The reason why the cloud counts as unreachable, if it does. */
  private unlisted: string | undefined;
  private readonly slowStart: Timer;
  private known: ProviderState;
  /** State of the breaker in the last report. */
  private reported: BreakerState = 'closed';

  constructor(
    private readonly env: HealthEnvironment,
    private readonly provider: string,
    /** Called when the state or the breaker has changed. */
    private readonly onChange: () => void,
  ) {
    const { clock } = env;
    this.breaker = new CircuitBreaker({ ...env, onChange: () => this.breakerChanged() });
    this.known = { state: 'starting', reason: undefined, since: clock.now() };
    this.report(0);
    this.slowStart = clock.schedule(SLOW_START_MS, () => {
      this.start ??= { state: 'unreachable', reason: `its start has not ended for ${SLOW_START_MS / 1000} s` };
      this.refresh();
    });
  }

  /**
   * Returns the state with the current reason; `since` is the time at which the state, not the reason, last changed.
   */
  get state(): ProviderState {
    const found = this.find();
    if (found.state !== this.known.state) this.known = { ...found, since: this.env.clock.now() };
    return { ...this.known, reason: found.reason };
  }

  /** Returns the health of every offer that was used or has failed since the start. */
  offers(): readonly OfferHealth[] {
    return this.pools.flatMap((pool) => pool.health());
  }

  /** True while the provider has not started and its start fails or takes too long. */
  get isStartFailing(): boolean {
    return this.start !== undefined;
  }

  /** Adds the offers of a pool. The pool must call `refresh` after changes of its offers. */
  addPool(offers: PoolOffers): void {
    this.pools.push(offers);
  }

  startFailed(error: DriverError): void {
    const isRejected = error.code === 'configuration' || error.code === 'auth';
    const reason = `it could not be started: ${error.message}`;
    this.start = { state: isRejected ? 'misconfigured' : 'unreachable', reason };
    this.refresh();
  }

  started(): void {
    this.slowStart.cancel();
    this.serving = true;
    this.start = undefined;
    this.refresh();
    this.onChange();
  }

  launchFailed(failure: BreakerFailure): void {
    this.breaker.failed(failure);
  }

  launchReached(evidence: LaunchEvidence, startedAt: number): void {
    this.unlisted = undefined;
    this.breaker.succeeded(evidence, startedAt);
    this.refresh();
  }

  /** Records that a listing of the cloud's resources has failed. */
  listingFailed(error: DriverError): void {
    const { failed, since } = this.listings;
    this.listings = { failed: failed + 1, since: failed === 0 ? this.env.clock.now() : since };
    if (this.listings.failed < FAILED_LISTINGS) return;
    const time = new Date(this.listings.since).toISOString();
    this.unlisted = `its cloud has not listed its resources since ${time}: ${error.message}`;
    this.refresh();
  }

  listed(): void {
    this.listings = { failed: 0, since: 0 };
    this.unlisted = undefined;
    // The cloud answers again, so the next probe is due at once.
    if (this.breaker.obstacle?.cause === 'unreachable') this.breaker.probeNow();
    this.refresh();
  }

  /** Computes the state again after a change of an offer. */
  refresh(): void {
    const before = this.known.state;
    if (this.state.state !== before) this.onChange();
  }

  stop(): void {
    this.slowStart.cancel();
    this.breaker.stop();
    this.report(undefined);
  }

  private find(): StateWithoutTime {
    const { obstacle } = this.breaker;
    if (!this.serving) return this.start ?? { state: 'starting', reason: undefined };
    if (obstacle !== undefined) {
      return { state: CONDITIONS[obstacle.cause] ?? 'degraded', reason: describeObstacle('its cloud', obstacle) };
    }
    if (this.unlisted !== undefined) return { state: 'unreachable', reason: this.unlisted };
    const closed = this.pools.flatMap((pool) =>
      pool.obstructed().flatMap((each) => (each.obstacle === undefined ? [] : [{ ...each, ...each.obstacle }])),
    );
    const worst = closed.find(({ cause }) => CONDITIONS[cause] !== undefined) ?? closed[0];
    if (worst?.obstacle === undefined) return { state: 'serving', reason: undefined };
    const more = closed.length === 1 ? '' : `, and ${closed.length - 1} more offers are out of service`;
    const reason = `pool ${worst.pool}, ${describeObstacle(nameOf(worst), worst.obstacle)}${more}`;
    return { state: CONDITIONS[worst.cause] ?? 'degraded', reason };
  }

  private breakerChanged(): void {
    const { state, obstacle } = this.breaker;
    if (state !== this.reported) {
      this.reported = state;
      this.report(STATE_VALUES[state]);
      this.env.metrics.count(BREAKER_TRANSITIONS, { ...this.labels, state, cause: obstacle?.cause ?? '' });
      if (state === 'half-open') this.env.log.info('The next launch probes the provider', { cause: obstacle?.cause });
    }
    this.refresh();
    this.onChange();
  }

  private report(value: number | undefined): void {
    this.env.metrics.set(BREAKER_STATES, this.labels, value);
  }

  private get labels(): Readonly<Record<'provider' | 'pool' | 'label' | 'zone' | 'machine_type', string>> {
    return { provider: this.provider, pool: '', label: '', zone: '', machine_type: '' };
  }
}
