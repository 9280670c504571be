/** What commands get to work with; tests give them something else than the process. */

import type { Clock, Logger, RandomSource } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { Store } from '@nodepool/store';

export interface Output {
  /** A line (or several) of the result, on stdout. */
  print(text: string): void;
  /** A line about what is going on, on stderr. */
  note(text: string): void;
}

export type ListFormat = 'pretty' | 'json';

/** For commands that only need the console. */
export interface ConsoleContext {
  readonly out: Output;
}

/** For commands that look into ZooKeeper. The store is complete. */
export interface StoreContext extends ConsoleContext {
  readonly store: Store;
  /** Its providers are broken, unless the command asked for drivers. */
  readonly config: NodepoolConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
  /** Asks the user, and resolves with the line that was typed; undefined: nobody is there to be asked. */
  readonly ask: Ask | undefined;
}

export type Ask = (question: string, signal: AbortSignal) => Promise<string>;

/** Exit codes, as scripts know them. */
export const ExitCode = { done: 0, refused: 1, usage: 2 } as const;

/** The command is refused, or failed in a foreseen way: the message says what to do. Exit code 1. */
export class RefusedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RefusedError';
  }
}
