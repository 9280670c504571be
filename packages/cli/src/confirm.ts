/** The question before a change of shared state that is hard to undo. */

import { CommandError, type StoreContext } from './command-context.js';

export interface Confirmation {
  /** Sentences about the effect. */
  readonly effect: string;
  /** The text that the user types to agree. */
  readonly expected: string;
  /** The state without the change, e.g. `nothing was erased`. */
  readonly refusal: string;
}

/** Asks, unless `force`. Rejects with `CommandError` if the user does not agree or there is no terminal. */
export async function confirm(
  { ask, interrupted }: StoreContext,
  { effect, expected, refusal }: Confirmation,
  { force }: { readonly force: boolean },
): Promise<void> {
  if (force) return;
  if (ask === undefined) {
    throw new CommandError(`${refusal}: there is no terminal to confirm it; --force does without. ${effect}`);
  }
  const answer = await ask(`${effect}\nType "${expected}" to confirm: `, interrupted);
  if (answer.trim() !== expected) throw new CommandError(`${refusal}: it was not confirmed`);
}
