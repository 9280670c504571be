import { setImmediate } from 'node:timers/promises';

/** Resolves in the next turn of the event loop. Long work awaits it between its parts, so that other work can run. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}
