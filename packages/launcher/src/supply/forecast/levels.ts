/** Sizes of a pool of ready nodes for which demand is counted. */

/** Largest size; a forecast never asks for more ready nodes. */
const LARGEST = 1024;

/** All sizes up to 8, and so many larger ones that each is at most a quarter larger than the one before. */
export const LEVELS: readonly number[] = levels();

function levels(): number[] {
  const found: number[] = [];
  for (let size = 1; size <= LARGEST; size += Math.max(1, 2 ** Math.floor(Math.log2(size / 4)))) found.push(size);
  return found;
}
