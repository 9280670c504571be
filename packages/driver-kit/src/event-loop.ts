import { systemClock } from '@nodepool/core';

/** Returns the longest time between two turns of the event loop during the work (ms). */
export async function longestBlock(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let last = systemClock.monotonic();
  let turn: NodeJS.Immediate;
  const measure = (): void => {
    const now = systemClock.monotonic();
    longest = Math.max(longest, now - last);
    last = now;
    turn = setImmediate(measure);
  };
  turn = setImmediate(measure);
  try {
    await work();
    // The last block is only measured in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    clearImmediate(turn);
  }
  return longest;
}
