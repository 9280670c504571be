/**
 * Predicts the demand for nodes of a label, and chooses the number of ready nodes that serves a stated share at once.
 *
 * For a quarter of an hour, the model predicts how many requested nodes each further ready node would serve at once: as
 * the mean of the recent quarters, of all quarters, and of those at the same time of day and of week, with weights that
 * fall with their age. The node is worth its time if it serves at least the price. One price for all quarters serves a
 * given share with the least idle time (it is the multiplier of Lagrange), so the model takes the highest price that
 * would have served the share in the last two weeks, with the predictions that it made at that time.
 */

import type { Quarter } from './demand-counter.js';
import { LEVELS } from './levels.js';
import { RecentMean, SlotMean, type Mean } from './means.js';
import { PriceChoice } from './price-choice.js';

/** Time of demand that a model remembers after a pause, in quarters: four weeks. */
const MAX_PAUSE = 2688;

const DAY = 96;
const WEEK = 7 * DAY;
/** Quarters before and after the same time of another day that count as well. */
const NEIGHBOURS = 4;

/** Ready nodes that are worth their time together, up to a price. */
interface Step {
  /** The last level that belongs to it. */
  readonly level: number;
  /** Nodes that each of its ready nodes serves: the highest price at which they are worth their time. */
  readonly price: number;
}

export class DemandModel {
  /** The means with their weights in a prediction. */
  private readonly means: readonly (readonly [mean: Mean, weight: number])[] = [
    [new RecentMean(0.8), 0.3],
    [new RecentMean(0.95), 0.2],
    [new RecentMean(0.9995), 0.1],
    [new SlotMean(DAY, NEIGHBOURS, 0.9), 0.2],
    [new SlotMean(WEEK, NEIGHBOURS, 0.8), 0.2],
  ];
  private readonly prices = new PriceChoice();
  private next: number | undefined;

  /** Adds a quarter that has ended. Quarters since the previous one that are missing had no demand. */
  add(quarter: Quarter): void {
    const first = Math.max(this.next ?? quarter.index, quarter.index - MAX_PAUSE);
    for (let index = first; index < quarter.index; index += 1) this.addNext({ index, demand: 0, gains: [] });
    if (quarter.index >= first) this.addNext(quarter);
  }

  /** Returns the numbers of ready nodes for the quarters that serve the share of the demand at once. */
  sizes(indexes: readonly number[], servedAtOnce: number): number[] {
    const price = this.prices.priceFor(servedAtOnce);
    return indexes.map((index) => {
      const last = stepsOf(this.predict(index)).findLast((step) => step.price >= price);
      return last === undefined ? 0 : (LEVELS[last.level] ?? 0);
    });
  }

  private addNext({ index, demand, gains }: Quarter): void {
    if (demand > 0) this.prices.add(index, demand, servedBy(stepsOf(this.predict(index)), gains));
    for (const [mean] of this.means) mean.add(index, gains);
    this.next = index + 1;
  }

  /** Returns the predicted gains by level. */
  private predict(index: number): number[] {
    const known = this.means.flatMap(([mean, weight]) => {
      const gains = mean.at(index);
      return gains === undefined ? [] : [{ gains, weight }];
    });
    const total = known.reduce((sum, { weight }) => sum + weight, 0);
    const length = Math.max(0, ...known.map(({ gains }) => gains.length));
    return Array.from({ length }, (_, level) =>
      known.reduce((sum, { gains, weight }) => sum + ((gains[level] ?? 0) * weight) / total, 0),
    );
  }
}

/** Returns the nodes that the ready nodes of each step would have served at once. */
function servedBy(steps: readonly Step[], gains: readonly number[]): { price: number; served: number }[] {
  let begin = 0;
  return steps.map(({ level, price }) => {
    const served = gains.slice(begin, level + 1).reduce((sum, gain) => sum + gain, 0);
    begin = level + 1;
    return { price, served };
  });
}

/** Returns the steps by falling price: the upper convex hull of the served nodes by number of ready nodes. */
function stepsOf(gains: readonly number[]): Step[] {
  const steps: (Step & { readonly nodes: number; readonly served: number })[] = [];
  for (const [level, gain] of gains.entries()) {
    let served = gain;
    let nodes = (LEVELS[level] ?? 0) - (LEVELS[level - 1] ?? 0);
    // Nodes that serve more than those before them are worth their time only together with them.
    for (let last = steps.at(-1); last !== undefined && last.price <= served / nodes; last = steps.at(-1)) {
      steps.pop();
      served += last.served;
      nodes += last.nodes;
    }
    steps.push({ level, price: served / nodes, nodes, served });
  }
  return steps;
}
