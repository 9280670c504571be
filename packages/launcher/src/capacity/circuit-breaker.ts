/**
 * A circuit breaker of a provider, or of one offer of a label. Closed: launches are sent there. Open: none is, until the
 * time of the next probe. Half-open: the next launch is the probe, and its result closes or opens the breaker again.
 */

import { backOffMs, type BackOffLimits, type Clock, type RandomSource, type Timer } from '@nodepool/core';
import type { BreakerCause, BreakerObstacle, BreakerState } from '../diagnostics/health.js';

/** How far a launch came. `accepted`: the cloud knows the instance. `created`: the instance came up, or failed. */
export type LaunchEvidence = 'accepted' | 'created' | 'ready';

/** When failures of one cause open a breaker, and what closes it again. */
interface BreakerRule {
  /** Failures in a row that open the breaker. */
  readonly failures: number;
  /** Limits of the time until the next probe. */
  readonly backOff: BackOffLimits;
  /** The probe has succeeded when it has come this far. */
  readonly healedBy: LaunchEvidence;
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
  quota: { ...FULL, healedBy: 'accepted' },
  capacity: FULL,
  // The launch has failed twice before it is reported.
  configuration: { failures: 1, backOff: { firstMs: MINUTE_MS, longestMs: 60 * MINUTE_MS }, healedBy: 'created' },
  node: { failures: 3, backOff: { firstMs: 10_000, longestMs: 5 * MINUTE_MS }, healedBy: 'ready' },
  slow: { failures: 2, backOff: { firstMs: 30_000, longestMs: 10 * MINUTE_MS }, healedBy: 'ready' },
};

const EVIDENCE: Readonly<Record<LaunchEvidence, number>> = { accepted: 1, created: 2, ready: 3 };

/** A failure that counts for a breaker. */
export interface BreakerFailure {
  readonly cause: BreakerCause;
  readonly reason: string;
  /** `Clock.monotonic` milliseconds at which the failed attempt began. */
  readonly startedAt: number;
  /** Time that the cloud asks callers to wait. */
  readonly retryAfterMs?: number | undefined;
}

export interface BreakerEnvironment {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Called after every transition. */
  readonly onChange: () => void;
}

interface Opened {
  readonly cause: BreakerCause;
  readonly reason: string;
  readonly since: number;
  /** `Clock.monotonic` milliseconds: results of attempts that began earlier are old. */
  readonly at: number;
  readonly times: number;
  readonly nextProbe: number;
  readonly timer: Timer;
}

export class CircuitBreaker {
  /** Failures in a row while it is closed. */
  private failures = 0;
  private opened: Opened | undefined;
  private current: BreakerState = 'closed';
  /** The launch that probes. */
  private probe: symbol | undefined;

  constructor(private readonly env: BreakerEnvironment) {}

  get state(): BreakerState {
    return this.current;
  }

  /** True if a launch can be sent there now. */
  get admits(): boolean {
    return this.current === 'closed' || (this.current === 'half-open' && this.probe === undefined);
  }

  /** Failures since the last success, without those of launches that ran while it was open. */
  get failuresInRow(): number {
    return this.failures;
  }

  /** Undefined while it is closed. */
  get obstacle(): BreakerObstacle | undefined {
    const { opened, current } = this;
    if (opened === undefined || current === 'closed') return undefined;
    const { cause, reason, since, nextProbe } = opened;
    return { state: current, cause, reason, since, nextProbe: current === 'open' ? nextProbe : undefined };
  }

  /** Begins the probe if the breaker is half-open. Returns how to end a probe that had no result. */
  begin(): () => void {
    if (this.current !== 'half-open' || this.probe !== undefined) return () => undefined;
    const probe = Symbol('probe');
    this.probe = probe;
    return () => {
      if (this.probe !== probe) return;
      this.probe = undefined;
      this.env.onChange();
    };
  }

  failed(failure: BreakerFailure): void {
    const { cause, startedAt } = failure;
    // Launches that ran at the same time fail together.
    if (this.opened !== undefined && (this.current === 'open' || startedAt < this.opened.at)) return;
    this.failures += 1;
    if (this.current === 'closed' && this.failures < BREAKER_RULES[cause].failures) return;
    this.open(failure);
  }

  succeeded(evidence: LaunchEvidence, startedAt: number): void {
    const { opened } = this;
    if (opened === undefined) {
      if (evidence === 'ready') this.failures = 0;
      return;
    }
    if (startedAt < opened.at || EVIDENCE[evidence] < EVIDENCE[BREAKER_RULES[opened.cause].healedBy]) return;
    this.close();
  }

  /** Ends the time until the next probe, because something that the breaker is open for may have ended. */
  probeNow(): void {
    if (this.current === 'open') this.halfOpen();
  }

  /** Closes the breaker because the fault has certainly ended. */
  close(): void {
    this.opened?.timer.cancel();
    this.failures = 0;
    this.probe = undefined;
    if (this.opened === undefined) return;
    this.opened = undefined;
    this.current = 'closed';
    this.env.onChange();
  }

  /** Cancels the timer; nothing is reported from now on. */
  stop(): void {
    this.opened?.timer.cancel();
  }

  private open({ cause, reason, retryAfterMs = 0 }: BreakerFailure): void {
    const { clock, random } = this.env;
    const { opened: before } = this;
    const times = before?.cause === cause ? before.times + 1 : 1;
    const waitMs = Math.max(backOffMs(times, undefined, random, BREAKER_RULES[cause].backOff), retryAfterMs);
    this.probe = undefined;
    this.current = 'open';
    this.opened = {
      cause,
      reason,
      since: before?.since ?? clock.now(),
      at: clock.monotonic(),
      times,
      nextProbe: clock.now() + waitMs,
      timer: clock.schedule(waitMs, () => this.halfOpen()),
    };
    this.env.onChange();
  }

  private halfOpen(): void {
    this.opened?.timer.cancel();
    this.current = 'half-open';
    this.probe = undefined;
    this.env.onChange();
  }
}
