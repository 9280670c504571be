/** The time that calls have waited for their turn, which does not count against the deadline of their work. */

import type { Call } from './call.js';

/** Time by work (ms). The calls of a work share signal and deadline; a step of a machine has a new deadline. */
const waits = new WeakMap<AbortSignal, { readonly deadline: number; ms: number }>();

/** Records that a call has waited for its turn. */
export function recordWait({ signal, deadline }: Call, ms: number): void {
  if (ms <= 0) return;
  const wait = waits.get(signal);
  if (wait?.deadline === deadline) wait.ms += ms;
  else waits.set(signal, { deadline, ms });
}

/** Returns the deadline of a call, moved by the time that the calls of its work have waited. */
export function deadlineOf({ signal, deadline }: Call): number {
  const wait = waits.get(signal);
  return wait?.deadline === deadline ? deadline + wait.ms : deadline;
}
