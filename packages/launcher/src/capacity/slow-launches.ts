/**
 * Ends launch attempts that are much slower than others of their label, once another offer or pool can serve them: a
 * lone slow launch late, and all launches of an offer that is stuck as soon as several of them are overdue.
 */

import type { Clock, DriverError, Timer } from '@nodepool/core';
import { SlowLaunchError } from './launch-fault.js';
import { OfferTimes, OVERDUE_FLOOR_MS, SLOW_FLOOR_MS, type TimedOffer } from './launch-times.js';

/** Interval of the checks of an offer that has old launches, milliseconds. */
const CHECK_MS = 2000;
/** Maximum number of launches abandoned per check: the other pools can report that they are full before the next. */
const MOVES_PER_CHECK = 10;

/** A launch as its watch sees it. */
export interface WatchedLaunch {
  /** Returns true if another offer or pool can serve it. */
  readonly canMove: () => boolean;
  readonly abandon: (reason: DriverError) => void;
}

interface TimedAttempt extends WatchedLaunch {
  readonly startedAt: number;
}

export interface TimedLaunch {
  readonly startedAt: number;
  /** Ends the measurement. `isReady`: the launch has succeeded. Returns true if a success took longer than usual. */
  end(isReady: boolean): boolean;
}

interface WatchedOffer {
  readonly times: OfferTimes<TimedAttempt>;
  timer: Timer | undefined;
  /** `Clock.monotonic` milliseconds at which the offer was last found to be stuck. */
  stuckAt: number;
}

export class SlowLaunches {
  /** By label and then by pool, zone and machine type. */
  private readonly labels = new Map<string, Map<string, WatchedOffer>>();
  /** Labels with offers, by pool. */
  private readonly labelsOfPool = new Map<string, Set<string>>();

  /** `isEnabled` is false without circuit breakers. */
  constructor(
    private readonly clock: Clock,
    private readonly isEnabled: boolean,
  ) {}

  /** Starts measuring a launch. `isHealthy` returns true while the breakers of the offer are closed. */
  begin(place: TimedOffer, isHealthy: () => boolean, watched: WatchedLaunch): TimedLaunch {
    const offer = this.offerOf(place, isHealthy);
    const { times } = offer;
    times.isHealthy = isHealthy;
    const { canMove, abandon } = watched;
    const launch: TimedAttempt = { canMove, abandon, startedAt: this.clock.monotonic() };
    times.running.add(launch);
    this.checkLater(offer);
    return {
      startedAt: launch.startedAt,
      end: (isReady) => {
        const isLate = times.running.delete(launch) && isReady && times.ready(launch);
        if (times.running.size === 0) cancel(offer);
        return isLate;
      },
    };
  }

  forget(pool: string): void {
    for (const label of this.labelsOfPool.get(pool) ?? []) {
      const offers = this.labels.get(label) ?? new Map<string, WatchedOffer>();
      for (const [key, offer] of offers) {
        if (offer.times.place.pool !== pool) continue;
        cancel(offer);
        offers.delete(key);
      }
      if (offers.size === 0) this.labels.delete(label);
    }
    this.labelsOfPool.delete(pool);
  }

  private checkLater(offer: WatchedOffer): void {
    if (!this.isEnabled || offer.timer !== undefined) return;
    const { times, stuckAt } = offer;
    const [oldest] = times.running;
    if (oldest === undefined) return;
    const isStuck = times.unanswered(stuckAt).length > 0;
    const dueMs = isStuck ? 0 : oldest.startedAt + OVERDUE_FLOOR_MS - this.clock.monotonic();
    offer.timer = this.clock.schedule(Math.max(dueMs, CHECK_MS), () => {
      offer.timer = undefined;
      this.check(offer);
      this.checkLater(offer);
    });
  }

  private check(offer: WatchedOffer): void {
    const { times } = offer;
    const now = this.clock.monotonic();
    if (times.isStuck()) offer.stuckAt = now;
    const stuck = times.unanswered(offer.stuckAt).filter(({ canMove }) => canMove());
    const moved = stuck.slice(0, MOVES_PER_CHECK);
    for (const launch of moved) {
      const why = 'launches of this offer take much longer than usual, and others can serve the request';
      launch.abandon(new SlowLaunchError(`the launch has taken ${seconds(now - launch.startedAt)}; ${why}`));
    }
    if (moved.length === 0) this.checkLone(offer, now);
  }

  private checkLone({ times }: WatchedOffer, now: number): void {
    const [oldest] = times.running;
    if (oldest === undefined || now - oldest.startedAt < SLOW_FLOOR_MS) return;
    const limitMs = times.limitMs() ?? Infinity;
    const slow = [...times.running].filter(({ startedAt, canMove }) => now - startedAt >= limitMs && canMove());
    for (const launch of slow.slice(0, MOVES_PER_CHECK)) {
      const message = `the launch has taken ${seconds(now - launch.startedAt)}, more than the limit of ${seconds(limitMs)}`;
      launch.abandon(new SlowLaunchError(`${message}, which follows from usual launches of the label`));
    }
  }

  private offerOf(place: TimedOffer, isHealthy: () => boolean): WatchedOffer {
    let offers = this.labels.get(place.label);
    if (offers === undefined) {
      offers = new Map();
      this.labels.set(place.label, offers);
    }
    const key = JSON.stringify([place.pool, place.zone ?? '', place.machineType ?? '']);
    let offer = offers.get(key);
    if (offer === undefined) {
      const all = offers;
      const timesOfLabel = (): Iterable<OfferTimes<TimedAttempt>> => [...all.values()].map(({ times }) => times);
      const times = new OfferTimes<TimedAttempt>(place, this.clock, timesOfLabel, isHealthy);
      offer = { times, timer: undefined, stuckAt: -Infinity };
      offers.set(key, offer);
      const labels = this.labelsOfPool.get(place.pool) ?? new Set();
      this.labelsOfPool.set(place.pool, labels.add(place.label));
    }
    return offer;
  }
}

function cancel(offer: WatchedOffer): void {
  offer.timer?.cancel();
  offer.timer = undefined;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
