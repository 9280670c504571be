/**
 * Chooses the price of a ready node, in nodes that it serves per quarter of an hour, from the outcomes of earlier
 * predictions.
 */

const WEEK = 672;
/** Time for which outcomes count, in quarters. */
const WINDOW = 8 * WEEK;
/** Largest ratio between the price and the one without outcomes. The limit keeps rare bursts from deciding alone. */
const MAX_CHANGE = 4;
/** Range of the prices, and the ratio of neighbouring ones as a logarithm. */
const LOWEST_PRICE = 1e-5;
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
  private first: number | undefined;
  private last = 0;
  private demand = 0;
  /** Nodes that are served at once at the price of each bucket, and not at higher ones. */
  private readonly served = new Float64Array(BUCKETS);

  /** Adds a quarter with the ready nodes that were predicted to be worth their time at each price. */
  add(index: number, demand: number, steps: readonly { readonly price: number; readonly served: number }[]): void {
    this.first ??= index;
    this.last = index;
    // The predictions of the first week do not know the days of the week yet.
    if (index < this.first + WEEK) return;
    const outcome = { index, demand, steps: steps.map(({ price, served }) => ({ bucket: bucketOf(price), served })) };
    this.outcomes.push(outcome);
    this.count(outcome, 1);
    while ((this.outcomes[0]?.index ?? Infinity) <= index - WINDOW) this.dropOldest();
  }

  /**
   * Returns the highest price at which the share of the demand would have been served at once. The fewer weeks of
   * outcomes there are, the nearer it is to a first guess: a node may miss as much as the share of the demand may.
   */
  priceFor(servedAtOnce: number): number {
    const guess = 1 - servedAtOnce;
    const weeks = Math.min(WINDOW, this.last - (this.first ?? this.last) - WEEK) / WEEK;
    if (weeks <= 0 || this.demand === 0) return guess;
    const change = Math.log(this.best(servedAtOnce) / guess) * (weeks / (weeks + 1));
    return guess * Math.exp(Math.min(Math.log(MAX_CHANGE), Math.max(-Math.log(MAX_CHANGE), change)));
  }

  private best(servedAtOnce: number): number {
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
