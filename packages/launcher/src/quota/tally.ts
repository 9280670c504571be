import { QuotaInformation } from '@nodepool/core';

/** A changing sum of amounts by resource. */
export class Tally {
  private readonly amounts = new Map<string, number>();

  get(resource: string): number {
    return this.amounts.get(resource) ?? 0;
  }

  /** Adds the amounts, or subtracts them with a `sign` of -1. */
  add(use: QuotaInformation, sign: 1 | -1 = 1): void {
    const { amounts } = this;
    const entries = use.entries();
    // Several tallies change with each change of a node: an index needs no iterators.
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index];
      if (entry === undefined) continue;
      const resource = entry[0];
      const sum = (amounts.get(resource) ?? 0) + sign * entry[1];
      if (sum === 0) amounts.delete(resource);
      else amounts.set(resource, sum);
    }
  }

  /** Returns true if no amount exceeds what is available of its resource. */
  isWithin(availableOf: (resource: string) => number): boolean {
    for (const [resource, amount] of this.amounts) if (amount > availableOf(resource)) return false;
    return true;
  }

  read(): QuotaInformation {
    return QuotaInformation.use(Object.fromEntries(this.amounts));
  }
}
