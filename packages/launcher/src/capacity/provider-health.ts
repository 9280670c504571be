/**
 * The state of a provider, derived from the results of its calls: the one source of every view. A circuit breaker keeps
 * requests away while its API fails, throttles, rejects the credentials or has no valid certificate; each offer of its
 * pools has another breaker. Launches, their failed steps, listings and deletions show if the cloud can be used.
 */

import type { ApiCall, Clock, DriverError, Logger, Metrics, OpenCall, RandomSource, Timer } from '@nodepool/core';
import { ERROR_POLICIES, nameOfCall, toDriverError } from '@nodepool/core';
import { CircuitBreaker, type BreakerFailure, type LaunchEvidence } from './circuit-breaker.js';
import { causeOf } from './launch-fault.js';
import type { BreakerCause, BreakerState, OfferHealth } from '@nodepool/status';
import { STATE_VALUES, type PoolOffers } from './pool-offers.js';
import { conditionOf, conditionOfStart, type Condition, type FailedListings } from './provider-condition.js';
import { BREAKER_STATES, BREAKER_TRANSITIONS } from '../metrics/launcher-metrics.js';

/** Time after which a provider that has not started counts as failing, milliseconds. */
const SLOW_START_MS = 30_000;
/**
 * Time without any answer after which a cloud counts as unreachable while a launch or a call waits for one,
 * milliseconds. Answers to other calls prove that the cloud works, so a single slow call does not count.
 */
const SILENT_MS = 10_000;
/** Time without any answer after which the cloud is asked: the calls in progress may be slow ones (ms). */
const ASK_MS = 5000;
/** Lateness of a timer that shows that the launcher was blocked (ms). */
const LATE_MS = 1000;
/** Time from a failure to a call that checks whether the cloud still fails, milliseconds. */
const SUSPICION_MS = 2000;

export interface DatedCondition extends Condition {
  /** Undefined in the states `starting` and `serving`. */
  readonly reason: string | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Time at which the last trouble ended, milliseconds since the epoch; undefined if there was none. */
  readonly recoveredAt: number | undefined;
}

export interface HealthEnvironment {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Makes a call that reads from the cloud, or rejects with its `DriverError`. Absent: only launches count. */
  readonly check?: (() => Promise<void>) | undefined;
  /** Returns the call in progress that has waited longest for its answer. Absent: unknown. */
  readonly oldestCall?: () => OpenCall | undefined;
}

/** A call without an answer. */
interface WaitingCall extends Pick<OpenCall, 'name' | 'host'> {
  readonly waitedMs: number;
}

export class ProviderHealth {
  readonly breaker: CircuitBreaker;
  private readonly pools: PoolOffers[] = [];
  private serving = false;
  /** The reason why the start fails, if it does. */
  private start: Condition | undefined;
  private listings: FailedListings | undefined;
  /** The call that has waited longest of those that have ended without an answer since the last answer. */
  private unansweredCall: WaitingCall | undefined;
  /** Start (`Clock.monotonic` ms) of the first call that has ended without an answer since the last answer. */
  private unansweredSince = Infinity;
  /** Status of the last call. */
  private lastStatus: ApiCall['status'];
  /** `Clock.monotonic` milliseconds of the last check that was late, because the launcher was blocked. */
  private blockedUntil = -Infinity;
  /** `Clock.monotonic` milliseconds of the last answer of the cloud. */
  private answeredAt = -Infinity;
  private answered = 0;
  /** `Clock.monotonic` milliseconds of the question whether the cloud answers; undefined since its last answer. */
  private askedAt: number | undefined;
  /** Looks for calls without an answer while calls are in progress. */
  private silence: Timer | undefined;
  /** The check after a failure that has not opened the breaker. */
  private suspicion: Timer | undefined;
  private stopped = false;
  private readonly slowStart: Timer;
  private known: DatedCondition;
  /** State of the breaker in the last report. */
  private reported: BreakerState = 'closed';

  constructor(
    private readonly env: HealthEnvironment,
    private readonly provider: string,
    /** Called when the state or the breaker has changed. */
    private readonly onChange: () => void,
  ) {
    const { clock } = env;
    const check = env.check === undefined ? undefined : (): Promise<BreakerFailure | undefined> => this.check();
    this.breaker = new CircuitBreaker({ ...env, onChange: () => this.breakerChanged(), check });
    this.known = {
      state: 'starting',
      reason: undefined,
      since: clock.now(),
      trouble: undefined,
      recoveredAt: undefined,
    };
    this.report(0);
    this.slowStart = clock.schedule(SLOW_START_MS, () => {
      this.start ??= this.startTrouble('start', `its start has not ended for ${SLOW_START_MS / 1000} s`);
      this.refresh();
      this.onChange();
    });
  }

  /** Returns the state with its reason; `since` is the time at which the state, not the reason, last changed. */
  get state(): DatedCondition {
    const found = this.find();
    const { trouble } = found;
    const since = found.state === this.known.state ? this.known.since : (trouble?.since ?? this.env.clock.now());
    const hasRecovered = trouble === undefined && this.known.trouble !== undefined;
    const recoveredAt = hasRecovered ? since : this.known.recoveredAt;
    this.known = { state: found.state, reason: trouble?.reason, since, trouble, recoveredAt };
    return this.known;
  }

  /** True while the state is `starting`. */
  get isStarting(): boolean {
    return !this.serving && this.start === undefined;
  }

  /**
   * True while only other launchers may be able to use the cloud. They use the same account, so that a cloud that
   * throttles would throttle them, too.
   */
  get isUsableByOthersOnly(): boolean {
    return this.breaker.state === 'open' && this.breaker.obstacle?.cause !== 'throttled';
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
    const cause = causeOf(error);
    const reason = `it could not be started: ${error.message}`;
    this.start = this.startTrouble(cause === 'node' ? 'start' : cause, reason);
    this.refresh();
    this.onChange();
  }

  started(): void {
    this.slowStart.cancel();
    this.serving = true;
    this.start = undefined;
    this.refresh();
    this.onChange();
  }

  launchFailed(failure: BreakerFailure): void {
    this.failed(failure);
  }

  launchReached(evidence: LaunchEvidence, startedAt: number): void {
    this.breaker.succeeded(evidence, startedAt);
    this.refresh();
  }

  /** Records the failure of a call that is repeated: a step of a launch, a deletion, a listing. */
  callFailed(error: DriverError, startedAt?: number): void {
    const failure = this.failureOf(error, startedAt);
    if (failure !== undefined && this.env.check !== undefined) this.failed(failure);
  }

  /** Records the end of a call to the cloud. */
  called(call: ApiCall): void {
    const { status, host, durationMs } = call;
    this.lastStatus = status;
    if (typeof status !== 'number' && status !== 'ok') {
      this.unansweredSince = Math.min(this.unansweredSince, this.env.clock.monotonic() - durationMs);
      if (durationMs < (this.unansweredCall?.waitedMs ?? 0)) return;
      this.unansweredCall = { name: nameOfCall(call), host, waitedMs: durationMs };
      return;
    }
    this.answered += 1;
    this.hasAnswered();
  }

  private hasAnswered(): void {
    this.unansweredCall = undefined;
    this.unansweredSince = Infinity;
    this.answeredAt = this.env.clock.monotonic();
    this.askedAt = undefined;
  }

  /** Records the start of a call to the cloud, whose own deadline may be minutes away. */
  calling(): void {
    const { clock, oldestCall } = this.env;
    if (this.stopped) return;
    const dueAt = clock.monotonic() + ASK_MS;
    this.silence ??= clock.schedule(ASK_MS, () => {
      this.silence = undefined;
      const call = oldestCall?.();
      if (call === undefined) return;
      this.unanswered(Math.min(call.startedAt, this.unansweredSince), clock.monotonic() - dueAt);
      this.calling();
    });
  }

  /** Number of calls that the cloud has answered. */
  get answers(): number {
    return this.answered;
  }

  /**
   * Records that a launch or a call has waited since `since` (`Clock.monotonic` ms) for the cloud. `lateMs` is the
   * lateness of the timer that noticed it: the launcher itself may have been blocked.
   */
  unanswered(since: number, lateMs: number): void {
    const now = this.env.clock.monotonic();
    // Answers may have arrived that the blocked launcher has not processed yet.
    if (lateMs > LATE_MS) this.blockedUntil = now;
    // A driver that does not report its calls proves nothing.
    if (this.env.check === undefined || this.answered === 0 || this.breaker.state === 'open') return;
    // Calls wait for the end of the pause that the cloud demands.
    if (this.lastStatus === 'throttled') return;
    // A call that hangs since an earlier silence shows no more than that the cloud has been silent since its end.
    const startedAt = Math.max(since, this.answeredAt, this.blockedUntil, this.breaker.admittedAt);
    const silentMs = now - startedAt;
    if (silentMs < ASK_MS) return;
    this.askedAt ??= this.ask();
    if (silentMs < SILENT_MS || now - this.askedAt < ASK_MS) return;
    const reason = `no call has been answered for ${Math.round(silentMs / 1000)} s${this.longestWait()}`;
    this.breaker.failed({ cause: 'unreachable', reason, startedAt, isCertain: true, isOfCall: true });
  }

  /** Asks the cloud whether it answers. Returns the present time (`Clock.monotonic` ms). */
  private ask(): number {
    void this.check().then((failure) => {
      if (failure === undefined) this.hasAnswered();
      else if (!this.stopped && this.breaker.state === 'closed') this.failed(failure);
    });
    return this.env.clock.monotonic();
  }

  /** Records that a listing of the cloud's resources, which began at `startedAt` (`Clock.monotonic` ms), has failed. */
  listingFailed(error: DriverError, startedAt: number): void {
    this.callFailed(error, startedAt);
    const { failed = 0, since = this.env.clock.now() } = this.listings ?? {};
    this.listings = { failed: failed + 1, since, reason: error.message };
    this.refresh();
  }

  listed(): void {
    this.listings = undefined;
    this.breaker.answered();
    this.refresh();
  }

  /** Computes the state again after a change of an offer. */
  refresh(): void {
    const { state, trouble } = this.known;
    const now = this.state;
    if (now.state !== state || now.trouble?.cause !== trouble?.cause) this.onChange();
  }

  stop(): void {
    this.slowStart.cancel();
    this.suspicion?.cancel();
    this.silence?.cancel();
    this.breaker.stop();
    this.stopped = true;
    this.report(undefined);
  }

  private find(): Condition {
    const { serving: isServing, start, pools, listings } = this;
    return conditionOf({ isServing, start, obstacle: this.breaker.obstacle, pools, listings });
  }

  private startTrouble(cause: BreakerCause | 'start', reason: string): Condition {
    return conditionOfStart(cause, reason, this.start?.trouble?.since ?? this.env.clock.now());
  }

  /** Returns the call that has waited longest in vain as the end of a message, unless the message names it. */
  private longestWait(message = ''): string {
    const open = this.env.oldestCall?.();
    const waitedMs = this.env.clock.monotonic() - (open?.startedAt ?? Infinity);
    const { unansweredCall: ended } = this;
    const call = open !== undefined && waitedMs >= (ended?.waitedMs ?? 0) ? { ...open, waitedMs } : ended;
    if (call === undefined || message.includes(call.host ?? call.name)) return '';
    const host = call.host === undefined ? '' : ` of ${call.host}`;
    return `; ${call.name} had no answer${host} within ${Math.ceil(call.waitedMs / 1000)} s`;
  }

  /** Returns the failure of a call as the breaker counts it; undefined if it is no fault of the whole provider. */
  private failureOf(error: DriverError, startedAt = this.env.clock.monotonic()): BreakerFailure | undefined {
    const isTimeout = error.code === 'timeout';
    if (!isTimeout && ERROR_POLICIES[error.code].scope !== 'provider') return undefined;
    const { message, retryAfterMs } = error;
    const reason = isTimeout ? `${message}${this.longestWait(message)}` : message;
    const cause = isTimeout ? 'unreachable' : causeOf(error);
    return { cause, reason, retryAfterMs, startedAt, isOfCall: true };
  }

  private failed(failure: BreakerFailure): void {
    this.breaker.failed(failure);
    if (this.env.check === undefined || this.stopped || this.suspicion !== undefined) return;
    if (this.breaker.state !== 'closed') return;
    // Without launches, the next failure may come only after minutes.
    this.suspicion = this.env.clock.schedule(SUSPICION_MS, () => {
      void this.check().then((next) => {
        this.suspicion = undefined;
        if (next === undefined) this.breaker.answered();
        else if (this.breaker.state === 'closed') this.failed(next);
      });
    });
  }

  private async check(): Promise<BreakerFailure | undefined> {
    try {
      await this.env.check?.();
      return undefined;
    } catch (error) {
      return this.failureOfCheck(toDriverError(error));
    }
  }

  /** Returns the failure of a check, which may have waited in vain for the end of the pause that the cloud demands. */
  private failureOfCheck(error: DriverError): BreakerFailure | undefined {
    const failure = this.failureOf(error);
    const { obstacle } = this.breaker;
    if (failure === undefined || obstacle?.cause !== 'throttled') return failure;
    if (error.code !== 'timeout' || this.lastStatus !== 'throttled') return failure;
    const { cause, reason, demandedMs: retryAfterMs } = obstacle;
    return { ...failure, cause, reason, retryAfterMs };
  }

  private breakerChanged(): void {
    const { state, obstacle } = this.breaker;
    if (state !== this.reported) {
      this.reported = state;
      // The next round lists the resources again.
      if (state === 'closed') this.listings = undefined;
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
