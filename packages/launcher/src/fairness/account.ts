/** The use of capacity by one tenant or project: now, and in the past with exponential decay. */

import type { QuotaInformation } from '@nodepool/core';

/** The resources that are shared. */
export const SHARED_RESOURCES = ['instances', 'cores', 'ram'] as const;

/** Amounts in the order of `SHARED_RESOURCES`. */
export type Amounts = [instances: number, cores: number, ram: number];

export function sharedAmounts(use: QuotaInformation): Amounts {
  return [use.get('instances'), use.get('cores'), use.get('ram')];
}

/**
 * Weight of the current use against the past one. With a greater weight, a tenant that returns several nodes at once
 * would get them back although it had more than its share; with a smaller one, new tenants would displace all others.
 */
const CURRENT_WEIGHT = 0.1;

/** Amounts of past use below this are forgotten. */
const NEGLIGIBLE = 1e-3;

export class Account {
  /** Number of its open requests. */
  requests = 0;
  readonly projects = new Map<string, Account>();
  private readonly current: Amounts = [0, 0, 0];
  private readonly past: Amounts = [0, 0, 0];

  /** `at` is the time up to which `past` is computed, milliseconds since the epoch. */
  constructor(private at: number) {}

  /** True while it uses capacity or has requests, so that its weight counts. */
  get isActive(): boolean {
    return this.requests > 0 || this.current[0] > 0;
  }

  /** True if nothing is lost when it is removed. */
  isIdle(now: number, halfLifeMs: number): boolean {
    this.advance(now, halfLifeMs);
    return !this.isActive && this.past.every((amount) => amount < NEGLIGIBLE) && this.projects.size === 0;
  }

  /** Adds the amounts to the current use, or subtracts them with a `sign` of -1. */
  add(amounts: Amounts, sign: 1 | -1, now: number, halfLifeMs: number): void {
    this.advance(now, halfLifeMs);
    for (const index of INDEXES) {
      const sum = this.current[index] + sign * amounts[index];
      // Sums of fractions must end at zero.
      this.current[index] = sum < 1e-9 ? 0 : sum;
    }
  }

  /** Returns the weighted mean of the current use and of the decayed average of all former use. */
  used(now: number, halfLifeMs: number): Amounts {
    this.advance(now, halfLifeMs);
    const { current, past } = this;
    const mean = (index: 0 | 1 | 2): number => past[index] + (current[index] - past[index]) * CURRENT_WEIGHT;
    return [mean(0), mean(1), mean(2)];
  }

  get inUse(): Readonly<Amounts> {
    return this.current;
  }

  pastUse(now: number, halfLifeMs: number): Readonly<Amounts> {
    this.advance(now, halfLifeMs);
    return this.past;
  }

  /** Replaces the past use with that of an earlier time. Since then, the present nodes were in use. */
  restore(past: Readonly<Amounts>, at: number): void {
    for (const index of INDEXES) this.past[index] = past[index];
    this.at = at;
  }

  private advance(now: number, halfLifeMs: number): void {
    if (now <= this.at) return;
    const weight = 2 ** ((this.at - now) / halfLifeMs);
    for (const index of INDEXES)
      this.past[index] = this.current[index] + (this.past[index] - this.current[index]) * weight;
    this.at = now;
  }
}

const INDEXES = [0, 1, 2] as const;
