/** A number that changes over time: its maximum, its integral, and the time at a limit. */

import type { Clock } from '@nodepool/core';

/** The measured time, milliseconds since the epoch. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

export class Level {
  /** The greatest value in the period. */
  max = 0;
  /** The integral over the period, hours. */
  private areaMs = 0;
  private atLimitMs = 0;
  private value = 0;
  private changedAt: number;

  constructor(
    private readonly clock: Clock,
    private readonly period: Period,
    private readonly limit = Infinity,
  ) {
    this.changedAt = this.now();
  }

  change(by: number): void {
    this.settle();
    this.value += by;
    if (this.clock.now() >= this.period.fromMs && this.clock.now() < this.period.toMs) this.observe();
  }

  get hours(): number {
    this.settle();
    return this.areaMs / 3_600_000;
  }

  /** The part of the period at the limit, 0 to 1. */
  get shareAtLimit(): number {
    this.settle();
    const length = this.period.toMs - this.period.fromMs;
    return length === 0 ? 0 : this.atLimitMs / length;
  }

  /** Adds the time since the last change. */
  private settle(): void {
    const now = this.now();
    const passed = now - this.changedAt;
    this.changedAt = now;
    if (passed <= 0) return;
    this.observe();
    this.areaMs += this.value * passed;
    if (this.value >= this.limit) this.atLimitMs += passed;
  }

  private observe(): void {
    this.max = Math.max(this.max, this.value);
  }

  /** Returns the time within the period. */
  private now(): number {
    return Math.min(this.period.toMs, Math.max(this.period.fromMs, this.clock.now()));
  }
}
