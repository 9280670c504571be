import type { Clock, Logger, RandomSource } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { Store } from '@nodepool/store';
import type { Display } from './display.js';

export interface Output {
  /** Writes one or more lines of the result to stdout. */
  print(text: string): void;
  note(text: string): void;
  /** Returns the display of stdout; default: `PLAIN`. */
  display?(): Display;
  /** Replaces what the terminal shows by these lines; absent if stdout is not a terminal. */
  redraw?(text: string): void;
}

export const LIST_FORMATS = ['pretty', 'wide', 'json', 'yaml', 'name'] as const;
export type ListFormat = (typeof LIST_FORMATS)[number];

/** The context of commands that need only the console. */
export interface ConsoleContext {
  readonly out: Output;
}

/** The context of commands that access ZooKeeper. The store is complete. */
export interface StoreContext extends ConsoleContext {
  readonly store: Store;
  /** The configuration. Its providers are broken unless the command asked for drivers. */
  readonly config: NodepoolConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
  /** Asks the user and resolves with the typed line; undefined if the session is not interactive. */
  readonly ask: Ask | undefined;
}

export type Ask = (question: string, signal: AbortSignal) => Promise<string>;

/**
 * Exit codes, on which scripts rely. `notRun` is that of `nodepool run` if it ran no command or lost the nodes; `env`
 * and `timeout` of coreutils use the same.
 */
export const ExitCode = { done: 0, refused: 1, usage: 2, timeout: 3, lost: 4, notRun: 125 } as const;

/** The command was refused, or failed for a foreseen reason; the message names the remedy. */
export class CommandError extends Error {
  /** Default: `ExitCode.refused`. */
  readonly exitCode: number;
  constructor(message: string, { exitCode = ExitCode.refused, ...options }: ErrorOptions & { exitCode?: number } = {}) {
    super(message, options);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}

/** A wrong command line that only the data reveals. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super(message, { exitCode: ExitCode.usage });
    this.name = 'UsageError';
  }
}
