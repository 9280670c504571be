/**
 * Chooses the price of a ready node, in nodes that it serves per quarter of an hour, from the outcomes of predictions
 * in the last two weeks.
 */

/** Time for which outcomes count, in quarters: two weeks. */
const WINDOW = 1344;
/** Number of nodes that must have been requested before the price is chosen from outcomes. */
const ENOUGH_DEMAND = 50;
/** Price without outcomes. */
const FIRST_PRICE = 0.05;
/** Range of prices that are told apart, and their ratio. */
const LOWEST_PRICE = 1e-4;
const HIGHEST_PRICE = 1000;
const RATIO = Math.log(1.02);

const BUCKETS = Math.ceil(Math.log(HIGHEST_PRICE / LOWEST_PRICE) / RATIO) + 1;

/** The demand of a quarter, and the nodes that would have been served at once by price. */
interface Outcome {
  readonly index: number;
  readonly demand: number;
  readonly steps: readonly { readonly bucket: number; readonly served: number }[];
}

export class PriceChoice {
  private outcomes: Outcome[] = [];
  private demand = 0;
  /** Nodes that are served at once at the price of each bucket, and not at higher ones. */
  private readonly served = new Float64Array(BUCKETS);

  /** Adds a quarter with the ready nodes that were predicted to be worth their time at each price. */
  add(index: number, demand: number, steps: readonly { readonly price: number; readonly served: number }[]): void {
    const outcome = { index, demand, steps: steps.map(({ price, served }) => ({ bucket: bucketOf(price), served })) };
    this.outcomes.push(outcome);
    this.count(outcome, 1);
    while ((this.outcomes[0]?.index ?? Infinity) <= index - WINDOW) this.dropOldest();
  }

  /** Returns the highest price at which the share of the demand would have been served at once. */
  priceFor(servedAtOnce: number): number {
    if (this.demand < ENOUGH_DEMAND) return FIRST_PRICE;
    let missing = servedAtOnce * this.demand;
    for (let bucket = BUCKETS - 1; bucket > 0; bucket -= 1) {
      missing -= this.served[bucket] ?? 0;
      if (missing <= 0) return LOWEST_PRICE * Math.exp(bucket * RATIO);
    }
    return LOWEST_PRICE;
  }

  private dropOldest(): void {
    const oldest = this.outcomes.shift();
    if (oldest !== undefined) this.count(oldest, -1);
  }

  private count({ demand, steps }: Outcome, sign: 1 | -1): void {
    this.demand += sign * demand;
    for (const { bucket, served } of steps) this.served[bucket] = (this.served[bucket] ?? 0) + sign * served;
  }
}

/** Returns the bucket of the next lower price. */
function bucketOf(price: number): number {
  if (price <= LOWEST_PRICE) return 0;
  return Math.min(BUCKETS - 1, Math.floor(Math.log(price / LOWEST_PRICE) / RATIO));
}
