/** Amounts of resources, as limits, as needs and as use. */

import type { Resources } from '../model/node.js';

/**
 * Amounts by resource name: `instances`, `cores`, `ram` (MiB), `volumes`, `volume-gb`, or whatever a cloud counts. In a
 * limit, a resource that is not named is unlimited (`Infinity`); in a need or a use, it is 0. Immutable.
 */
export class QuotaInformation {
  private constructor(
    private readonly amounts: ReadonlyMap<string, number>,
    private readonly missing: number,
  ) {}

  /** A limit; -1 and Infinity mean unlimited, as clouds say it. */
  static limit(amounts: Resources): QuotaInformation {
    const known = Object.entries(amounts).filter(([, amount]) => amount >= 0 && amount !== Infinity);
    return new QuotaInformation(new Map(known), Infinity);
  }

  /** A need or a use. */
  static use(amounts: Resources): QuotaInformation {
    return new QuotaInformation(new Map(Object.entries(amounts)), 0);
  }

  get(resource: string): number {
    return this.amounts.get(resource) ?? this.missing;
  }

  add(other: QuotaInformation): QuotaInformation {
    return this.combine(other, (a, b) => a + b);
  }

  subtract(other: QuotaInformation): QuotaInformation {
    return this.combine(other, (a, b) => a - b);
  }

  /** The smaller of both limits, resource by resource. */
  min(other: QuotaInformation): QuotaInformation {
    return this.combine(other, Math.min);
  }

  /** True when no amount is below zero: after `limit.subtract(use)`, that it fits. */
  nonNegative(): boolean {
    for (const amount of this.amounts.values()) if (amount < 0) return false;
    return true;
  }

  /** Whether `need` fits into this, resource by resource. */
  fits(need: QuotaInformation): boolean {
    for (const [resource, amount] of need.amounts) if (amount > this.get(resource)) return false;
    return true;
  }

  /** What is named, by resource. */
  entries(): Iterable<readonly [resource: string, amount: number]> {
    return this.amounts;
  }

  /** What is named, e.g. for a node's `resources`. */
  toResources(): Resources {
    return Object.fromEntries(this.amounts);
  }

  private combine(other: QuotaInformation, op: (a: number, b: number) => number): QuotaInformation {
    const amounts = new Map<string, number>();
    for (const resource of new Set([...this.amounts.keys(), ...other.amounts.keys()])) {
      const amount = op(this.get(resource), other.get(resource));
      if (amount !== Infinity) amounts.set(resource, amount);
    }
    return new QuotaInformation(amounts, this.missing);
  }
}
