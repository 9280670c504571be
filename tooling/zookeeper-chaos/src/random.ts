import type { RandomSource } from '@nodepool/core';

/** Returns a whole number from 0 to `count` - 1. */
export function below(random: RandomSource, count: number): number {
  return Math.floor(random.next() * count);
}
