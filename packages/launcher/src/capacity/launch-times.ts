/**
 * Measures launch durations by offer and derives the age at which a launch counts as slow. A slow launch takes much
 * longer than launches of its label usually take in healthy offers, and longer than usual for its own offer.
 */

import type { Clock } from '@nodepool/core';
import type { Offer } from '../diagnostics/health.js';

/** Minimum age of a slow launch, milliseconds. */
const SLOW_FLOOR_MS = 120_000;
/** A launch counts as slow at this multiple of the usual duration. */
const SLOW_FACTOR = 2;
/** Number of the newest durations kept per offer, and the number required for an estimate. */
const SAMPLES = 20;
const ENOUGH_SAMPLES = 5;
/** Number of running launches whose ages are enough for an estimate. */
const ENOUGH_RUNNING = 3;

/** The offer and the pool of a launch. */
export interface TimedOffer extends Offer {
  /** Name of the pool: `provider/pool`. */
  readonly pool: string;
}

interface Times {
  readonly place: TimedOffer;
  /** Durations of the newest successful launches in milliseconds, oldest first. */
  readonly durations: number[];
  /** Running launches, oldest first. */
  readonly running: Set<{ readonly startedAt: number }>;
  isHealthy: () => boolean;
}

/** A launch that is running. */
export interface TimedLaunch {
  readonly startedAt: number;
  /**
   * Returns the age at which the launch counts as slow, in milliseconds; undefined if there is nothing to compare it
   * with.
   */
  limitMs(): number | undefined;
  /** Ends the measurement. `isReady` is true if the launch has succeeded. */
  end(isReady: boolean): void;
}

export class LaunchTimes {
  /** By label and then by pool, zone and machine type. */
  private readonly labels = new Map<string, Map<string, Times>>();

  constructor(private readonly clock: Clock) {}

  /** Starts measuring a launch. `isHealthy` returns true while the breakers of the offer are closed. */
  begin(place: TimedOffer, isHealthy: () => boolean): TimedLaunch {
    const times = this.timesOf(place);
    times.isHealthy = isHealthy;
    const launch = { startedAt: this.clock.monotonic() };
    times.running.add(launch);
    return {
      ...launch,
      limitMs: () => this.limitMs(times),
      end: (isReady) => {
        if (!times.running.delete(launch) || !isReady) return;
        times.durations.push(this.clock.monotonic() - launch.startedAt);
        if (times.durations.length > SAMPLES) times.durations.shift();
      },
    };
  }

  /** Removes the offers of a stopped pool. */
  forget(pool: string): void {
    for (const [label, offers] of this.labels) {
      for (const [key, { place }] of offers) if (place.pool === pool) offers.delete(key);
      if (offers.size === 0) this.labels.delete(label);
    }
  }

  private limitMs(own: Times): number | undefined {
    const others = [...(this.labels.get(own.place.label)?.values() ?? [])];
    const usual = others.flatMap((times) => (times === own || !times.isHealthy() ? [] : (this.usualMs(times) ?? [])));
    const ownUsual = estimate(own.durations, 0.9);
    const best = usual.length > 0 ? Math.min(...usual) : ownUsual;
    if (best === undefined) return undefined;
    return Math.max(SLOW_FLOOR_MS, SLOW_FACTOR * best, SLOW_FACTOR * (estimate(own.durations, 0.5) ?? 0));
  }

  /** Returns the usual duration in milliseconds. Running launches count if they have already taken longer. */
  private usualMs({ durations, running }: Times): number | undefined {
    const usual = estimate(durations, 0.9);
    if (usual === undefined || running.size < ENOUGH_RUNNING) return usual;
    const now = this.clock.monotonic();
    const ages = [...running].map(({ startedAt }) => now - startedAt);
    return Math.max(usual, quantile(ages, 0.5));
  }

  private timesOf(place: TimedOffer): Times {
    let offers = this.labels.get(place.label);
    if (offers === undefined) {
      offers = new Map();
      this.labels.set(place.label, offers);
    }
    const key = JSON.stringify([place.pool, place.zone ?? '', place.machineType ?? '']);
    let times = offers.get(key);
    if (times === undefined) {
      times = { place, durations: [], running: new Set(), isHealthy: () => true };
      offers.set(key, times);
    }
    return times;
  }
}

function estimate(durations: readonly number[], at: number): number | undefined {
  return durations.length < ENOUGH_SAMPLES ? undefined : quantile(durations, at);
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(at * sorted.length), sorted.length - 1)] ?? 0;
}
