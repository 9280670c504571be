import { QuotaInformation } from '@nodepool/core';

/** A changing sum of amounts by resource. */
export class Tally {
  private readonly amounts = new Map<string, number>();

  get(resource: string): number {
    return this.amounts.get(resource) ?? 0;
  }

  add(use: QuotaInformation): void {
    this.change(use, 1);
  }

  subtract(use: QuotaInformation): void {
    this.change(use, -1);
  }

  /** Returns the present amounts. */
  read(): QuotaInformation {
    return QuotaInformation.use(Object.fromEntries(this.amounts));
  }

  private change(use: QuotaInformation, sign: 1 | -1): void {
    use.forEach((amount, resource) => {
      const sum = this.get(resource) + sign * amount;
      if (sum === 0) this.amounts.delete(resource);
      else this.amounts.set(resource, sum);
    });
  }
}
