/**
 * Counts the demand for nodes of one label by quarter of an hour, and how much of it pools of ready nodes of different
 * sizes would have served at once.
 *
 * A pool of `size` nodes serves a request at once if fewer than `size` of its nodes were taken within the last boot
 * time, because each taken node is replaced one boot time later. A request that finds no ready node gets one of its own
 * and takes none from the pool. This is the loss system of Erlang with a constant service time.
 */

import { QUARTER_MS } from '@nodepool/config';
import { LEVELS } from './levels.js';

/** The demand of a quarter of an hour. */
export interface Quarter {
  /** Number of the quarter since the epoch. */
  readonly index: number;
  /** Number of requested nodes. */
  readonly demand: number;
  /**
   * By level of `LEVELS`: the nodes that a pool of this size serves at once, and the pool of the level before does not.
   * Zeros at the end are omitted.
   */
  readonly gains: readonly number[];
}

export class DemandCounter {
  /** By level: the times (ms) at which the taken nodes are replaced, earliest first. */
  private readonly replacements: readonly number[][] = LEVELS.map(() => []);
  private demand = 0;
  /** By level: the nodes served at once in the present quarter. */
  private served: number[] = LEVELS.map(() => 0);

  constructor(private index: number) {}

  /** The present quarter so far. */
  get quarter(): Quarter {
    const { index, demand, served } = this;
    const gains = served.map((count, level) => count - (served[level - 1] ?? 0));
    return { index, demand, gains: gains.slice(0, gains.findLastIndex((gain) => gain !== 0) + 1) };
  }

  /** Continues the counts of the present quarter that an earlier process began. */
  resume({ index, demand, gains }: Quarter): void {
    if (index !== this.index) return;
    let sum = 0;
    this.demand += demand;
    this.served = this.served.map((count, level) => count + (sum += gains[level] ?? 0));
  }

  /** Counts a node that is requested at a time in milliseconds since the epoch; times must not decrease. */
  add(now: number, bootMs: number): void {
    this.demand += 1;
    for (const [level, size] of LEVELS.entries()) {
      const replacements = this.replacements[level] ?? [];
      while ((replacements[0] ?? Infinity) <= now) replacements.shift();
      if (replacements.length >= size) continue;
      replacements.push(now + bootMs);
      this.served[level] = (this.served[level] ?? 0) + 1;
    }
  }

  /** Begins the quarter of this number. Returns the one that has ended. */
  begin(index: number): Quarter {
    const { quarter } = this;
    this.index = index;
    this.demand = 0;
    this.served = LEVELS.map(() => 0);
    return quarter;
  }
}

/** Returns the number of the quarter of an hour of a time in milliseconds since the epoch. */
export function quarterOf(now: number): number {
  return Math.floor(now / QUARTER_MS);
}
