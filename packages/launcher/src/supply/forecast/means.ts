/** Means of gains by level over past quarters, in which older quarters count less. */

export interface Mean {
  /** Adds the gains of a quarter; quarters are added in their order, without gaps. */
  add(index: number, gains: readonly number[]): void;
  /** Returns the mean for a later quarter; undefined if no quarter counts for it. */
  at(index: number): readonly number[] | undefined;
}

/** A sum of weighted gains, and the sum of the weights. */
class WeightedSum {
  weight = 0;
  readonly sums: number[] = [];

  constructor(private readonly decay: number) {}

  add(gains: readonly number[]): void {
    const { sums, decay } = this;
    this.weight = this.weight * decay + 1;
    const length = Math.max(sums.length, gains.length);
    for (let level = 0; level < length; level += 1) sums[level] = (sums[level] ?? 0) * decay + (gains[level] ?? 0);
  }
}

/** Mean of all quarters. */
export class RecentMean implements Mean {
  private readonly sum: WeightedSum;

  /** `decay`: weight of a quarter relative to that of the next one. */
  constructor(decay: number) {
    this.sum = new WeightedSum(decay);
  }

  add(_index: number, gains: readonly number[]): void {
    this.sum.add(gains);
  }

  at(): readonly number[] | undefined {
    return meanOf([this.sum]);
  }
}

/** Mean of the quarters at the same place in each period, and of their neighbours. */
export class SlotMean implements Mean {
  private readonly slots = new Map<number, WeightedSum>();

  /** `period`: its length in quarters; `decay`: weight of a period relative to that of the next one. */
  constructor(
    private readonly period: number,
    private readonly neighbours: number,
    private readonly decay: number,
  ) {}

  add(index: number, gains: readonly number[]): void {
    const slot = index % this.period;
    const sum = this.slots.get(slot) ?? new WeightedSum(this.decay);
    this.slots.set(slot, sum);
    sum.add(gains);
  }

  at(index: number): readonly number[] | undefined {
    const sums: WeightedSum[] = [];
    for (let offset = -this.neighbours; offset <= this.neighbours; offset += 1) {
      const sum = this.slots.get((index + offset + this.period) % this.period);
      if (sum !== undefined) sums.push(sum);
    }
    return meanOf(sums);
  }
}

function meanOf(sums: readonly WeightedSum[]): readonly number[] | undefined {
  const weight = sums.reduce((total, each) => total + each.weight, 0);
  if (weight === 0) return undefined;
  const length = Math.max(...sums.map((each) => each.sums.length));
  return Array.from(
    { length },
    (_, level) => sums.reduce((total, each) => total + (each.sums[level] ?? 0), 0) / weight,
  );
}
