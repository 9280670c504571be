/** Random selection. */

import type { RandomSource } from '@nodepool/core';

/** Returns an integer from `least` (inclusive) to `greatest` (exclusive). */
export function between(random: RandomSource, least: number, greatest: number): number {
  return Math.floor(least + random.next() * (greatest - least));
}

/** Returns a random element, or undefined if there are none. */
export function oneOf<T>(random: RandomSource, things: readonly T[]): T | undefined {
  return things[Math.floor(random.next() * things.length)];
}

/** Returns a random element according to the weights. */
export function weighted<T>(
  random: RandomSource,
  things: readonly (readonly [weight: number, thing: T])[],
): T | undefined {
  let left = random.next() * things.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, thing] of things) {
    left -= weight;
    if (left < 0) return thing;
  }
  return undefined;
}
