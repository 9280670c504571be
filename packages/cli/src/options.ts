/** Shared declarations of options. */

import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ListFormat, StoreContext } from './command-context.js';
import type { StoreNeeds } from './open.js';

/** Runs a command on the store; see `withStore`. */
export type OnStore = (command: (context: StoreContext) => Promise<void> | void, needs?: StoreNeeds) => Promise<void>;

export interface FormatOption {
  readonly format: ListFormat;
}

export function formatOption(): Option {
  return new Option('--format <form>', 'form of the list').choices(['pretty', 'json']).default('pretty');
}

export function example(command: Command, text: string): void {
  command.addHelpText('after', `\nExample:\n  $ ${text}`);
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
  };
}

export function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number of seconds, 0 or more.');
}
