/** Draws launches, deletions and uses of nodes from what was observed. */

import type { RandomSource } from '@nodepool/core';
import type { Day, DayRequest, Held, ObservedLaunch } from '../day/day.js';

/**
 * Number of observations next to the time of a draw that it chooses from. An outage of an hour therefore remains an
 * hour of failures.
 */
const NEIGHBOURS = 40;

/** Durations without any observation (ms). */
export interface AssumedTimes {
  readonly bootMs: number;
  readonly deleteMs: number;
  readonly heldMs: number;
}

export const ASSUMED_TIMES: AssumedTimes = { bootMs: 60_000, deleteMs: 10_000, heldMs: 600_000 };

/** A launch that is drawn. `error` is the code of its failure. */
export interface DrawnLaunch {
  readonly creatingMs: number;
  readonly bootingMs: number;
  readonly loginMs: number;
  readonly error: string | undefined;
}

export class Draws {
  private readonly byPlace: ReadonlyMap<string, readonly ObservedLaunch[]>;
  private readonly byProvider: ReadonlyMap<string, readonly ObservedLaunch[]>;
  private readonly byLabel: ReadonlyMap<string, readonly ObservedLaunch[]>;
  private readonly launches: readonly ObservedLaunch[];
  private readonly heldByLabel = new Map<string, number[]>();
  private readonly allHeld: number[] = [];
  private readonly allDeletions: readonly number[];
  /** Assumptions about what was never observed, as sentences. */
  readonly assumptions = new Set<string>();

  constructor(
    private readonly day: Day,
    private readonly assumed: AssumedTimes,
  ) {
    this.allDeletions = [...day.deletions.values()].flat();
    this.launches = [...day.launches].sort((a, b) => a.atMs - b.atMs);
    this.byPlace = groups(this.launches, ({ provider, label }) => keyOf(provider, label));
    this.byProvider = groups(this.launches, ({ provider }) => provider);
    this.byLabel = groups(this.launches, ({ label }) => label);
    for (const { labels, held } of day.requests) {
      held.forEach(({ ms }, index) => {
        const label = labels[index];
        if (ms === undefined || label === undefined) return;
        this.allHeld.push(ms);
        const known = this.heldByLabel.get(label);
        if (known === undefined) this.heldByLabel.set(label, [ms]);
        else known.push(ms);
      });
    }
  }

  launch(provider: string, label: string, atMs: number, random: RandomSource): DrawnLaunch {
    const observed = this.observedLaunches(provider, label);
    const drawn = nearestOf(observed, atMs, random);
    if (drawn === undefined) return { creatingMs: this.assumed.bootMs, bootingMs: 0, loginMs: 0, error: undefined };
    const { creatingMs, bootingMs, loginMs, result } = drawn;
    return { creatingMs, bootingMs, loginMs, error: result === 'ready' ? undefined : result };
  }

  /** Returns the duration of a deletion, milliseconds. */
  deletion(provider: string, random: RandomSource): number {
    const observed = this.day.deletions.get(provider) ?? this.allDeletions;
    if (observed.length > 0) return oneOf(observed, random) ?? 0;
    const { deleteMs } = this.assumed;
    this.assumptions.add(`No deletion was observed: every deletion takes ${deleteMs / 1000} s.`);
    return deleteMs;
  }

  /** Returns the use of each node of a request, milliseconds. */
  held({ labels, held }: DayRequest, random: RandomSource): readonly number[] {
    return held.map((each, index) => this.use(each, labels[index] ?? '', random));
  }

  private use(held: Held, label: string, random: RandomSource): number {
    // Always draws, so that the other draws of a run do not depend on what is known.
    const chance = random.next();
    if (held.ms !== undefined) return held.ms;
    const own = this.heldByLabel.get(label) ?? [];
    const observed = own.length > 0 ? own : this.allHeld;
    if (own.length === 0) {
      const source =
        observed.length > 0
          ? 'is drawn from all labels'
          : `is ${this.assumed.heldMs / 1000} s, as nothing was observed`;
      this.assumptions.add(`The use of nodes of label ${label} is not known: it ${source}.`);
    }
    const longer = held.atLeastMs > 0 ? observed.filter((ms) => ms >= held.atLeastMs) : observed;
    const drawn = longer[Math.floor(chance * longer.length)];
    return drawn ?? Math.max(held.atLeastMs, this.assumed.heldMs);
  }

  private observedLaunches(provider: string, label: string): readonly ObservedLaunch[] {
    const own = this.byPlace.get(keyOf(provider, label));
    if (own !== undefined) return own;
    const what = `No launch of label ${label} in provider ${provider} was observed`;
    const ofProvider = this.byProvider.get(provider);
    if (ofProvider !== undefined) {
      this.assumptions.add(`${what}: its launches are drawn from the other labels of the provider.`);
      return ofProvider;
    }
    const ofLabel = this.byLabel.get(label);
    if (ofLabel !== undefined) {
      this.assumptions.add(`${what}: its launches are drawn from the other providers of the label.`);
      return ofLabel;
    }
    this.assumptions.add(
      this.launches.length > 0
        ? `${what}: its launches are drawn from all launches.`
        : `No launch was observed: every launch takes ${this.assumed.bootMs / 1000} s and succeeds.`,
    );
    return this.launches;
  }
}

/** Returns one of the observations next to the time; they are sorted by time. */
function nearestOf(sorted: readonly ObservedLaunch[], atMs: number, random: RandomSource): ObservedLaunch | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.atMs ?? Infinity) < atMs) low = middle + 1;
    else high = middle;
  }
  const count = Math.min(NEIGHBOURS, sorted.length);
  const first = Math.max(0, Math.min(low - (count >> 1), sorted.length - count));
  return sorted[first + Math.floor(random.next() * count)];
}

function oneOf<T>(list: readonly T[], random: RandomSource): T | undefined {
  return list[Math.floor(random.next() * list.length)];
}

function keyOf(provider: string, label: string): string {
  return JSON.stringify([provider, label]);
}

function groups<T>(list: readonly T[], keyOfEach: (each: T) => string): ReadonlyMap<string, readonly T[]> {
  const map = new Map<string, T[]>();
  for (const each of list) {
    const key = keyOfEach(each);
    const group = map.get(key);
    if (group === undefined) map.set(key, [each]);
    else group.push(each);
  }
  return map;
}
