import type { NodeRequest } from '@nodepool/core';
import type { PoolComponentData } from '@nodepool/store';

/** Returns true if the pool serves the labels of the request at the moment. */
export function serves(
  { paused, paused_labels: labels = [] }: PoolComponentData,
  { node_types: wanted }: NodeRequest,
): boolean {
  return !paused && !labels.some((label) => wanted.includes(label));
}
