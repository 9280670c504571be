import { compareRequests } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';

/** Returns the index of the entry, or the one at which to insert it. */
export function position(entries: readonly RequestEntry[], entry: RequestEntry): number {
  // Most requests are the last when they become open, and the first when a pool accepts them.
  if (entries[0] === entry) return 0;
  const last = entries.at(-1);
  if (last === undefined || compareRequests(last.request, entry.request) < 0) return entries.length;
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = entries[middle];
    if (other !== undefined && compareRequests(other.request, entry.request) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
