/** Says why no registered pool can serve labels together. */

import type { PoolComponentData } from '@nodepool/store';

/** Returns the reason as part of a sentence; for labels that a pool has, too. */
export function lackOfPool(labels: readonly string[], pools: readonly PoolComponentData[]): string {
  const wanted = [...new Set(labels)];
  const missing = wanted.filter((label) => !pools.some(({ supported_labels: supported }) => supported.includes(label)));
  return missing.length > 0
    ? `no registered pool has ${missing.join(', ')}`
    : `no single pool has all of ${wanted.join(', ')}`;
}
