import type { NodeRequest } from '@nodepool/core';
import type { PoolComponentData } from '@nodepool/store';

/** The labels of each pool, because a pool may have hundreds and is asked at each change of any pool. */
const labelSets = new WeakMap<PoolComponentData, ReadonlySet<string>>();

/** Returns true if the pool has all these labels. */
export function hasLabels(pool: PoolComponentData, labels: readonly string[]): boolean {
  let served = labelSets.get(pool);
  if (served === undefined) {
    served = new Set(pool.supported_labels);
    labelSets.set(pool, served);
  }
  for (const label of labels) if (!served.has(label)) return false;
  return true;
}

/** Returns true if the pool serves the labels of the request at the moment. */
export function serves(
  { paused, paused_labels: labels = [] }: PoolComponentData,
  { node_types: wanted }: NodeRequest,
): boolean {
  return !paused && !labels.some((label) => wanted.includes(label));
}
