/** A distribution of durations in buckets whose bounds grow by 5 %. Distributions can be merged and stored. */

const GROWTH = Math.log(1.05);
/** Smaller values (ms) are all in one bucket. */
const SMALLEST = 0.5;

export class Distribution {
  /** Number of values by bucket. */
  private readonly counts = new Map<number, number>();
  private total = 0;
  private sumMs = 0;

  get count(): number {
    return this.total;
  }

  /** The mean in milliseconds; null without values. */
  get mean(): number | null {
    return this.total === 0 ? null : this.sumMs / this.total;
  }

  add(ms: number): void {
    const bucket = Math.max(0, Math.ceil(Math.log(Math.max(ms, SMALLEST) / SMALLEST) / GROWTH));
    this.counts.set(bucket, (this.counts.get(bucket) ?? 0) + 1);
    this.total += 1;
    this.sumMs += ms;
  }

  merge(other: Distribution): void {
    for (const [bucket, count] of other.counts) this.counts.set(bucket, (this.counts.get(bucket) ?? 0) + count);
    this.total += other.total;
    this.sumMs += other.sumMs;
  }

  /** Returns a quantile in milliseconds, exact to 2.5 %; null without values. */
  quantile(part: number): number | null {
    if (this.total === 0) return null;
    let left = Math.ceil(part * this.total);
    let value = 0;
    for (const [bucket, count] of [...this.counts].sort(([a], [b]) => a - b)) {
      value = SMALLEST * Math.exp((bucket - 0.5) * GROWTH);
      left -= count;
      if (left <= 0) break;
    }
    return value;
  }

  toJSON(): DistributionJson {
    return { sum: Math.round(this.sumMs), counts: [...this.counts] };
  }

  /** Returns the distribution of stored JSON; invalid parts are ignored. */
  static from({ sum, counts }: Partial<DistributionJson> = {}): Distribution {
    const distribution = new Distribution();
    for (const pair of Array.isArray(counts) ? counts : []) {
      const [bucket, count] = Array.isArray(pair) ? (pair as unknown[]) : [];
      if (!Number.isInteger(bucket) || !Number.isInteger(count)) continue;
      distribution.counts.set(Number(bucket), Number(count));
      distribution.total += Number(count);
    }
    distribution.sumMs = typeof sum === 'number' ? sum : 0;
    return distribution;
  }
}

export interface DistributionJson {
  readonly sum: number;
  readonly counts: readonly (readonly [number, number])[];
}
