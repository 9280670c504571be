/** Measures launch durations by offer, and derives the ages at which launches count as slow or overdue. */

import type { Clock } from '@nodepool/core';
import type { Offer } from '@nodepool/status';

/** Minimum age of a lone slow launch, milliseconds. */
export const SLOW_FLOOR_MS = 120_000;
/** A launch counts as slow at this multiple of the usual duration. */
const SLOW_FACTOR = 2;
/** Minimum age of an overdue launch, milliseconds. */
export const OVERDUE_FLOOR_MS = 60_000;
/** A launch is overdue at this multiple of the longest of the newest durations. */
const OVERDUE_FACTOR = 1.25;
/** Number of overdue launches that prove that an offer is stuck; one is enough if its breaker is not closed. */
const OVERDUE_LAUNCHES = 2;
/** Number of the newest durations kept per offer, and the number required for an estimate. */
const SAMPLES = 20;
const ENOUGH_SAMPLES = 5;
/** Number of running launches whose ages are enough for an estimate. */
const ENOUGH_RUNNING = 3;

export interface TimedOffer extends Offer {
  /** Name of the pool: `provider/pool`. */
  readonly pool: string;
}

/** `startedAt`: `Clock.monotonic` milliseconds. */
export interface RunningLaunch {
  readonly startedAt: number;
}

/** The launches of one offer. */
export class OfferTimes<Launch extends RunningLaunch = RunningLaunch> {
  /** Durations of the newest successful launches in milliseconds, oldest first. */
  private readonly durations: number[] = [];
  /** Running launches, oldest first. */
  readonly running = new Set<Launch>();
  /** Start of the youngest launch that has succeeded. */
  private youngestReady = -Infinity;

  constructor(
    readonly place: TimedOffer,
    private readonly clock: Pick<Clock, 'monotonic'>,
    /** The offers of the label, this one included. */
    private readonly offers: () => Iterable<OfferTimes<Launch>>,
    /** Returns true while the breakers of the offer are closed. */
    public isHealthy: () => boolean,
  ) {}

  /** Records a successful launch. Returns true if it took longer than launches of the offer usually do. */
  ready(launch: Launch): boolean {
    const durationMs = this.clock.monotonic() - launch.startedAt;
    const isLate = durationMs >= (this.overdueMs() ?? Infinity);
    this.durations.push(durationMs);
    if (this.durations.length > SAMPLES) this.durations.shift();
    this.youngestReady = Math.max(this.youngestReady, launch.startedAt);
    return isLate;
  }

  /**
   * Returns the age at which a lone launch counts as slow, in milliseconds: much longer than launches of the label
   * usually take in healthy offers, and than usual for this offer. Returns undefined without durations to compare with.
   */
  limitMs(): number | undefined {
    const usual = this.others().flatMap((other) => (other.isHealthy() ? (other.usualMs() ?? []) : []));
    const best = usual.length > 0 ? Math.min(...usual) : estimate(this.durations, 0.9);
    if (best === undefined) return undefined;
    return Math.max(SLOW_FLOOR_MS, SLOW_FACTOR * best, SLOW_FACTOR * (estimate(this.durations, 0.5) ?? 0));
  }

  /**
   * Returns true if the offer is stuck: several launches are overdue, no launch that began after them has succeeded
   * here, and launches elsewhere are not known to be as late. A pool that has launched nothing yet counts as better: it
   * is the usual alternative of a preferred pool.
   */
  isStuck(): boolean {
    const limitMs = this.overdueMs();
    if (limitMs === undefined) return false;
    const startedBy = this.clock.monotonic() - limitMs;
    const [first, ...more] = this.unanswered(startedBy);
    if (first === undefined || 1 + more.length < (this.isHealthy() ? OVERDUE_LAUNCHES : 1)) return false;
    const others = this.others();
    const isBetter = (other: OfferTimes<Launch>): boolean =>
      other.isHealthy() && (other.youngestReady > first.startedAt || other.unanswered(startedBy).length === 0);
    return others.every(({ place }) => place.pool === this.place.pool) || others.some(isBetter);
  }

  /**
   * Returns the age at which launches count as overdue, in milliseconds: longer than the newest launches of the offer,
   * or if there are too few, than those of other offers by far.
   */
  private overdueMs(): number | undefined {
    const longest = estimate(this.durations, 1);
    return longest === undefined ? this.limitMs() : Math.max(OVERDUE_FLOOR_MS, OVERDUE_FACTOR * longest);
  }

  /** Returns running launches that began by that time and after those that have succeeded, oldest first. */
  unanswered(startedBy: number): readonly Launch[] {
    return [...this.running].filter(({ startedAt }) => startedAt > this.youngestReady && startedAt <= startedBy);
  }

  /** Returns the usual duration; launches that are running count if they already take longer. */
  private usualMs(): number | undefined {
    const usual = estimate(this.durations, 0.9);
    if (usual === undefined || this.running.size < ENOUGH_RUNNING) return usual;
    const now = this.clock.monotonic();
    const ages = [...this.running].map(({ startedAt }) => now - startedAt);
    return Math.max(usual, quantile(ages, 0.5));
  }

  private others(): OfferTimes<Launch>[] {
    return [...this.offers()].filter((other) => other !== this);
  }
}

function estimate(durations: readonly number[], at: number): number | undefined {
  return durations.length < ENOUGH_SAMPLES ? undefined : quantile(durations, at);
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(at * sorted.length), sorted.length - 1)] ?? 0;
}
