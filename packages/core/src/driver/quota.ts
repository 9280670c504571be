import type { Resources } from '../model/node.js';

/**
 * Amounts by resource name: `instances`, `cores`, `ram` (MiB), `volumes`, `volume-gb`, or any other resource that a
 * cloud counts. A resource without an amount is unlimited (`Infinity`) in a limit and 0 in a need or a use. Immutable.
 */
export class QuotaInformation {
  /** A need or a use of nothing. */
  static readonly NOTHING = QuotaInformation.use({});

  /** `list`: the amounts that are set. They are few, so that a list is smaller and faster than a map. */
  private constructor(
    private readonly list: readonly (readonly [resource: string, amount: number])[],
    private readonly missing: number,
  ) {}

  /** Creates a limit. As in the APIs of clouds, -1 and `Infinity` mean unlimited. */
  static limit(amounts: Resources): QuotaInformation {
    const known = Object.entries(amounts).filter(([, amount]) => amount >= 0 && amount !== Infinity);
    return new QuotaInformation(known, Infinity);
  }

  /** Creates a need or a use. */
  static use(amounts: Resources): QuotaInformation {
    return new QuotaInformation(Object.entries(amounts), 0);
  }

  get(resource: string): number {
    for (let index = 0; index < this.list.length; index += 1) {
      const entry = this.list[index];
      if (entry?.[0] === resource) return entry[1];
    }
    return this.missing;
  }

  add(other: QuotaInformation): QuotaInformation {
    if (this.isNothing) return other;
    if (other.isNothing) return this;
    return this.combine(other, (a, b) => a + b);
  }

  subtract(other: QuotaInformation): QuotaInformation {
    return this.combine(other, (a, b) => a - b);
  }

  /** True for a need or a use of nothing. */
  private get isNothing(): boolean {
    return this.list.length === 0 && this.missing === 0;
  }

  /** Returns the smaller of both limits for each resource. */
  min(other: QuotaInformation): QuotaInformation {
    return this.combine(other, Math.min);
  }

  /** Returns true if `need` fits into these amounts for each resource. */
  fits(need: QuotaInformation): boolean {
    for (let index = 0; index < need.list.length; index += 1) {
      const entry = need.list[index];
      if (entry !== undefined && entry[1] > this.get(entry[0])) return false;
    }
    return true;
  }

  /** Returns the amounts that are set, by resource. */
  entries(): readonly (readonly [resource: string, amount: number])[] {
    return this.list;
  }

  /** Returns the amounts that are set as an object, e.g. for a node's `resources`. */
  toResources(): Resources {
    return Object.fromEntries(this.list);
  }

  private combine(other: QuotaInformation, op: (a: number, b: number) => number): QuotaInformation {
    const amounts = new Map<string, number>();
    for (const resource of new Set([...this.list, ...other.list].map(([name]) => name))) {
      const amount = op(this.get(resource), other.get(resource));
      if (amount !== Infinity) amounts.set(resource, amount);
    }
    return new QuotaInformation([...amounts], this.missing);
  }
}
