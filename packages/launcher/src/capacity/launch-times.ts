/**
 * Durations of launches by offer, and the limit from which on a launch counts as slow: much longer than launches of its
 * label usually take in healthy offers, and than its own offer is known for.
 */

import type { Clock } from '@nodepool/core';
import type { Offer } from '../diagnostics/health.js';

/** A launch never counts as slow before this age, milliseconds. */
const SLOW_FLOOR_MS = 120_000;
/** A slow launch takes this many times as long as usual. */
const SLOW_FACTOR = 2;
/** Newest durations that are kept by offer, and how many of them make an estimate. */
const SAMPLES = 20;
const ENOUGH_SAMPLES = 5;
/** Running launches whose ages count as an estimate. */
const ENOUGH_RUNNING = 3;

/** The offer of a launch; the names of different pools are distinct. */
export interface TimedOffer extends Offer {
  /** Name of the pool: `provider/pool`. */
  readonly pool: string;
}

interface Times {
  readonly place: TimedOffer;
  /** Milliseconds of the newest successful launches, oldest first. */
  readonly durations: number[];
  /** Times at which running launches began, oldest first. */
  readonly running: Set<{ readonly startedAt: number }>;
  isHealthy: () => boolean;
}

/** A launch that is running. */
export interface TimedLaunch {
  readonly startedAt: number;
  /** Returns the age at which it counts as slow; undefined if nothing is known that it could be compared with. */
  limitMs(): number | undefined;
  /** Ends the measurement; `isReady` if the launch has succeeded. */
  end(isReady: boolean): void;
}

export class LaunchTimes {
  /** By label and then by pool, zone and machine type. */
  private readonly labels = new Map<string, Map<string, Times>>();

  constructor(private readonly clock: Clock) {}

  /** `isHealthy` returns true while launches are sent to the offer without reservation. */
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

  /** Forgets the offers of a pool that is stopped. */
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

  /** Returns the usual duration; launches that are running count if they already take longer. */
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
