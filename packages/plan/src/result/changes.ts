/** The differences between two configurations that exceed the spread of their runs. */

import type { Spread, Summary } from './summary.js';
import { amount, count, seconds, withRange } from './units.js';

/** Differences below this part of the former value are not worth a sentence. */
const MIN_CHANGE = 0.05;

export function describeChanges(before: Summary, after: Summary): readonly string[] {
  const found: string[] = [];
  const compare = (what: string, from: Spread | null, to: Spread | null, text: (value: number) => string): void => {
    if (from === null || to === null || !differs(from, to)) return;
    const direction = to.median > from.median ? 'rises' : 'falls';
    found.push(`${what} ${direction} from ${withRange(from, text)} to ${withRange(to, text)}.`);
  };
  for (const [label, to] of Object.entries(after.labels)) {
    const from = before.labels[label];
    if (from === undefined) continue;
    compare(`Label ${label}: the median of the waits`, from.wait.p50, to.wait.p50, seconds);
    compare(`Label ${label}: p95 of the waits`, from.wait.p95, to.wait.p95, seconds);
    compare(`Label ${label}: the number of failed requests`, from.failed, to.failed, count);
    compare(`Label ${label}: the number of unanswered requests`, from.unanswered, to.unanswered, count);
    compare(`Label ${label}: the number of idle hours`, from.idleHours, to.idleHours, amount);
  }
  for (const [pool, to] of Object.entries(after.pools)) {
    const from = before.pools[pool];
    if (from === undefined) found.push(`Pool ${pool} has up to ${withRange(to.mostNodes, count)} nodes; it had none.`);
    else compare(`Pool ${pool}: the largest number of nodes`, from.mostNodes, to.mostNodes, count);
  }
  for (const pool of Object.keys(before.pools)) {
    if (after.pools[pool] === undefined) found.push(`Pool ${pool} has no nodes any more.`);
  }
  return found;
}

/** Returns true if the ranges do not overlap, and the medians differ noticeably. */
function differs(from: Spread, to: Spread): boolean {
  if (from.least <= to.most && to.least <= from.most) return false;
  if (from.median === Infinity || to.median === Infinity) return true;
  return Math.abs(to.median - from.median) > MIN_CHANGE * from.median;
}
