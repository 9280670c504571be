/**
 * A circuit breaker of a provider, or of one offer of a label. While it is closed, it admits launches; while it is
 * open, it admits none until the next probe is due. Half-open, it admits one launch as the probe, whose result closes
 * or opens it again.
 */

import { backOffMs, type BackOffLimits, type Clock, type RandomSource, type Timer } from '@nodepool/core';
import type { BreakerCause, BreakerObstacle, BreakerState } from '@nodepool/status';

/** Progress of a launch: the cloud knows (`accepted`) or has created (`created`) the instance; it answers (`ready`). */
export type LaunchEvidence = 'accepted' | 'created' | 'ready';

/** Evidence that a cloud works. `answered`: it has answered a call that reads. */
type Evidence = 'answered' | LaunchEvidence;

/** Rule for failures of one cause: when they open a breaker, and which evidence closes it again. */
interface BreakerRule {
  /** Failures in a row that open the breaker. */
  readonly failures: number;
  /** Limits of the time until the next probe. */
  readonly backOff: BackOffLimits;
  /** Evidence from which on the probe counts as a success. */
  readonly healedBy: Evidence;
}

const MINUTE_MS = 60_000;
const OUTAGE: BreakerRule = {
  failures: 3,
  backOff: { firstMs: 10_000, longestMs: MINUTE_MS },
  healedBy: 'accepted',
};
const FULL: BreakerRule = {
  failures: 1,
  backOff: { firstMs: 20_000, longestMs: 2 * MINUTE_MS },
  healedBy: 'created',
};

export const BREAKER_RULES: Readonly<Record<BreakerCause, BreakerRule>> = {
  unreachable: OUTAGE,
  throttled: OUTAGE,
  auth: OUTAGE,
  certificate: OUTAGE,
  quota: { ...FULL, healedBy: 'accepted' },
  capacity: FULL,
  refused: FULL,
  // A launch reports this cause only after its second failure, so one report is enough.
  configuration: { failures: 1, backOff: { firstMs: MINUTE_MS, longestMs: 10 * MINUTE_MS }, healedBy: 'created' },
  node: { failures: 3, backOff: { firstMs: 10_000, longestMs: 5 * MINUTE_MS }, healedBy: 'ready' },
  slow: { failures: 2, backOff: { firstMs: 2 * MINUTE_MS, longestMs: 10 * MINUTE_MS }, healedBy: 'ready' },
  // Launches succeed nevertheless, so the first probe comes late.
  interrupted: { failures: 1, backOff: { firstMs: 5 * MINUTE_MS, longestMs: 20 * MINUTE_MS }, healedBy: 'ready' },
};

const EVIDENCE: Readonly<Record<Evidence, number>> = { answered: 0, accepted: 1, created: 2, ready: 3 };

/** A cloud that demands a wait of this time or longer is avoided at the first demand (ms). */
const LONG_WAIT_MS = 5000;
/** Longest time until a probe, whatever the cloud demands (ms). */
const LONGEST_DEMAND_MS = MINUTE_MS;
/** Longest time until the next probe after a failed call that creates nothing, which costs the cloud little (ms). */
const LONGEST_CHECK_MS = 30_000;
/** Time after which a breaker closes that no launch probes: after a successful check, and without a check (ms). */
const UNPROBED_MS = 15_000;
const UNCHECKED_MS = 10 * MINUTE_MS;

export interface BreakerFailure {
  readonly cause: BreakerCause;
  readonly reason: string;
  /** `Clock.monotonic` milliseconds at which the failed attempt began. */
  readonly startedAt: number;
  /** Delay that the cloud asks for, milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** True if the failure alone opens the breaker. */
  readonly isCertain?: boolean;
  /** True if an answer ends the fault, because a call failed that creates nothing. */
  readonly isOfCall?: boolean;
}

export interface BreakerEnvironment {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Called after every transition, and when a probe begins or ends without a result: `admits` may have changed. */
  readonly onChange: () => void;
  /**
   * Makes a call that reads from the cloud, before a launch probes it. Resolves with the failure, or with undefined if
   * the cloud answers. Absent: only launches probe.
   */
  readonly check?: (() => Promise<BreakerFailure | undefined>) | undefined;
}

interface Opened {
  readonly cause: BreakerCause;
  readonly reason: string;
  readonly since: number;
  /** `Clock.monotonic` milliseconds; successes of attempts that began earlier are ignored. */
  readonly at: number;
  readonly times: number;
  readonly nextProbe: number;
  readonly demandedMs: number | undefined;
  readonly healedBy: Evidence;
  readonly timer: Timer;
}

export class CircuitBreaker {
  /** Consecutive failures while the breaker is closed. */
  private failures = 0;
  /** True if all of these are failures of calls that create nothing. */
  private areOfCalls = true;
  private opened: Opened | undefined;
  private current: BreakerState = 'closed';
  /** The launch that is the probe, if one is running. */
  private probe: symbol | undefined;
  private isChecking = false;
  private unprobed: Timer | undefined;
  /** Time at which the breaker closes without a launch, in milliseconds since the epoch. */
  private closesAt: number | undefined;
  private stopped = false;
  private admitted = -Infinity;

  constructor(private readonly env: BreakerEnvironment) {}

  get state(): BreakerState {
    return this.current;
  }

  get admits(): boolean {
    return this.current === 'closed' || (this.current === 'half-open' && this.probe === undefined);
  }

  /**
   * `Clock.monotonic` milliseconds at which the breaker last began to admit launches again. A failure of an attempt
   * that began earlier is ignored, because it may be due to the fault that has ended.
   */
  get admittedAt(): number {
    return this.admitted;
  }

  /** True while a launch is the probe. */
  get isProbing(): boolean {
    return this.probe !== undefined;
  }

  /** Consecutive failures; failures of launches that ran while the breaker was open do not count. */
  get failuresInRow(): number {
    return this.failures;
  }

  /** Describes why the breaker is not closed; undefined while it is closed. */
  get obstacle(): BreakerObstacle | undefined {
    const { opened, current } = this;
    if (opened === undefined || current === 'closed') return undefined;
    const { cause, reason, since, demandedMs, times } = opened;
    const isProbing = current === 'open' ? this.isChecking : this.probe !== undefined;
    const next = current === 'open' ? opened.nextProbe : this.closesAt;
    const nextProbe = isProbing ? undefined : next;
    return { state: current, cause, reason, since, times, demandedMs, isProbing, nextProbe };
  }

  /** Starts the probe if the breaker is half-open. The returned function ends a probe that had no result. */
  begin(): () => void {
    if (this.current !== 'half-open' || this.probe !== undefined) return () => undefined;
    const probe = Symbol('probe');
    this.probe = probe;
    this.env.onChange();
    return () => {
      if (this.probe !== probe || this.stopped) return;
      this.probe = undefined;
      this.env.onChange();
    };
  }

  failed(failure: BreakerFailure): void {
    const { cause, startedAt } = failure;
    if (this.stopped) return;
    // Concurrent launches fail together and count once.
    if (this.current === 'open' || startedAt < this.admitted) return;
    this.areOfCalls = failure.isOfCall === true && (this.areOfCalls || this.failures === 0);
    this.failures += 1;
    const { isCertain = (failure.retryAfterMs ?? 0) >= LONG_WAIT_MS } = failure;
    if (this.current === 'closed' && !isCertain && this.failures < BREAKER_RULES[cause].failures) return;
    this.open(failure);
  }

  succeeded(evidence: LaunchEvidence, startedAt: number): void {
    const { opened } = this;
    if (opened === undefined) {
      if (evidence === 'ready') this.failures = 0;
      return;
    }
    if (startedAt < opened.at || EVIDENCE[evidence] < EVIDENCE[opened.healedBy]) return;
    this.close();
  }

  /** Records that the cloud has answered a call that reads: the next probe is due at once. */
  answered(): void {
    if (this.current === 'closed' && this.areOfCalls) this.failures = 0;
    if (this.opened === undefined || this.stopped || this.current !== 'open') return;
    if (this.opened.healedBy === 'answered') this.close();
    else this.halfOpen();
  }

  /** Makes the next probe due at once, because the fault may have ended. */
  probeNow(): void {
    if (this.current === 'open' && !this.stopped) this.halfOpen();
  }

  /** Closes the breaker without a probe, because the fault has certainly ended. */
  close(): void {
    this.opened?.timer.cancel();
    this.unprobed?.cancel();
    this.failures = 0;
    this.probe = undefined;
    if (this.opened === undefined || this.stopped) return;
    this.admitted = this.env.clock.monotonic();
    this.opened = undefined;
    this.current = 'closed';
    this.env.onChange();
  }

  /** Cancels the timer. Results of launches that end later have no effect, and `onChange` is not called afterwards. */
  stop(): void {
    this.stopped = true;
    this.opened?.timer.cancel();
    this.unprobed?.cancel();
  }

  private open({ cause, reason, retryAfterMs, isOfCall = false }: BreakerFailure): void {
    const { clock, random } = this.env;
    const { opened: before } = this;
    const { backOff, healedBy } = BREAKER_RULES[cause];
    const times = before?.cause === cause ? before.times + 1 : 1;
    const longestMs = isOfCall ? Math.min(backOff.longestMs, LONGEST_CHECK_MS) : backOff.longestMs;
    const demandedMs = Math.min(retryAfterMs ?? 0, LONGEST_DEMAND_MS);
    const waitMs = Math.max(backOffMs(times, undefined, random, { ...backOff, longestMs }), demandedMs);
    this.unprobed?.cancel();
    this.probe = undefined;
    this.current = 'open';
    this.opened = {
      cause,
      reason,
      since: before?.since ?? clock.now(),
      at: clock.monotonic(),
      times,
      nextProbe: clock.now() + waitMs,
      demandedMs: retryAfterMs,
      healedBy: isOfCall && (before?.healedBy ?? 'answered') === 'answered' ? 'answered' : healedBy,
      timer: clock.schedule(waitMs, () => this.due()),
    };
    this.env.onChange();
  }

  /** Lets a launch probe the cloud, after a call that reads has succeeded. */
  private due(): void {
    const { check, onChange } = this.env;
    if (check === undefined) {
      this.halfOpen();
      return;
    }
    const { opened } = this;
    this.isChecking = true;
    void check().then((failure) => {
      this.isChecking = false;
      if (this.stopped || this.opened !== opened || this.current !== 'open') return;
      if (failure === undefined) this.answered();
      else this.open(failure);
    });
    onChange();
  }

  private halfOpen(): void {
    this.opened?.timer.cancel();
    this.admitted = this.env.clock.monotonic();
    this.current = 'half-open';
    this.probe = undefined;
    this.closeUnprobed();
    this.env.onChange();
  }

  /** Closes the breaker after a while without launches: the cloud answers, or its trouble is probably over. */
  private closeUnprobed(): void {
    const { clock, check } = this.env;
    const ms = check === undefined ? UNCHECKED_MS : UNPROBED_MS;
    this.unprobed?.cancel();
    this.closesAt = clock.now() + ms;
    this.unprobed = clock.schedule(ms, () => {
      if (this.current !== 'half-open') return;
      if (this.probe === undefined) this.close();
      else this.closeUnprobed();
    });
  }
}
