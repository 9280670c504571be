/**
 * Ends launch attempts of a provider in trouble that have no instance yet, and attempts that the cloud refuses at the
 * moment, once another pool can serve them. The cloud is searched for what an attempt without an instance may have
 * created before its record is deleted. Attempts that only another launcher can continue are left to it as they are.
 */

import { TransientError, type Clock, type DriverError, type Timer } from '@nodepool/core';
import type { CircuitBreaker } from './circuit-breaker.js';

/** Interval of the checks while launches are running, milliseconds. */
const CHECK_MS = 1000;
/** Maximum number of launches abandoned per check: the other pools can report that they are full before the next. */
const MOVES_PER_CHECK = 10;

/** The launcher has abandoned a launch because of a known trouble. The error is no answer of the cloud. */
export class StrandedLaunchError extends TransientError {}

export interface StrandedLaunch {
  /** `Clock.monotonic` milliseconds. */
  readonly startedAt: number;
  /** Returns true if no instance of the attempt is known. */
  readonly lacksInstance: () => boolean;
  /** Returns the refusal that the cloud has reported while the driver waits for it to pass. */
  readonly refusal: () => DriverError | undefined;
  /** Returns true if another pool can serve the request. */
  readonly canMoveOn: () => boolean;
  /** Returns true if another launcher in this pool can continue the attempt during the trouble. */
  readonly canBeLeft: () => boolean;
  readonly abandon: (reason: DriverError) => void;
  /** Leaves the request with all its launches to that launcher. */
  readonly leave: (reason: string) => void;
}

/** The health of the provider. */
interface TroubledProvider {
  readonly breaker: Pick<CircuitBreaker, 'state' | 'admittedAt'>;
  readonly isUsableByOthersOnly: boolean;
  readonly state: { readonly reason: string | undefined };
  /** Records that a launch has waited since `since`; the check of the launches was late by `lateMs`. */
  unanswered(since: number, lateMs: number): void;
}

export class StrandedLaunches {
  private readonly running = new Set<StrandedLaunch>();
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly health: TroubledProvider,
  ) {}

  /** Watches a launch attempt until the returned function is called. */
  begin(launch: StrandedLaunch): () => void {
    this.running.add(launch);
    this.checkLater();
    return () => {
      this.running.delete(launch);
      if (this.running.size === 0) this.stop();
    };
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private checkLater(): void {
    const dueAt = this.clock.monotonic() + CHECK_MS;
    this.timer ??= this.clock.schedule(CHECK_MS, () => {
      this.timer = undefined;
      this.check(this.clock.monotonic() - dueAt);
      if (this.running.size > 0) this.checkLater();
    });
  }

  private check(lateMs: number): void {
    const refused = [...this.running].filter(({ refusal, canMoveOn }) => refusal() !== undefined && canMoveOn());
    for (const { refusal, abandon } of refused.slice(0, MOVES_PER_CHECK)) {
      const reason = refusal();
      if (reason !== undefined) abandon(reason);
    }
    const waiting = [...this.running].filter(({ lacksInstance }) => lacksInstance());
    // A call of an earlier launch may have been lost in a trouble that is over.
    const oldest = waiting.find(({ startedAt }) => startedAt >= this.health.breaker.admittedAt);
    if (oldest !== undefined) this.health.unanswered(oldest.startedAt, lateMs);
    if (this.health.breaker.state !== 'open') return;
    const reason = this.health.state.reason ?? 'its cloud fails';
    const movable = new Set(waiting.filter(({ canMoveOn }) => canMoveOn()));
    for (const { abandon } of [...movable].slice(0, MOVES_PER_CHECK)) {
      abandon(new StrandedLaunchError(`the launch has no instance yet: ${reason}`));
    }
    if (!this.health.isUsableByOthersOnly) return;
    const others = [...this.running].filter((launch) => !movable.has(launch) && launch.canBeLeft());
    for (const { leave } of others.slice(0, MOVES_PER_CHECK)) leave(reason);
  }
}
