import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.js';

/** Resolves in the next turn of the event loop. Long work awaits it between its parts, so that other work can run. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}

/**
 * Returns a function for the breaks of long work. It resolves at once, or in the next turn if the work has lasted
 * `turnMs` since the last one.
 */
export function pauses(clock: Clock, turnMs: number): () => Promise<void> {
  let began = clock.monotonic();
  return async () => {
    if (clock.monotonic() - began <= turnMs) return;
    await nextTurn();
    began = clock.monotonic();
  };
}
