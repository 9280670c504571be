/** Command lines of this workspace's programs: wrong options, failures, interruptions, and closed pipes. */

import { errorCodeOf, isError, reasonOf } from '@nodepool/core';
import { ignoreBrokenPipes } from '@nodepool/daemon/process-setup';
import { InterruptedError } from './interruption.js';

/** Exit status of a program with wrong options or arguments. */
const WRONG_USAGE = 2;
/** Exit status of an interrupted program. */
const INTERRUPTED = 130;

/** A wrong option or argument. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/**
 * Runs a program. If `main` rejects because of wrong options or arguments, prints the reason and `help`, and sets exit
 * status 2. Ends an interrupted program with status 130. After any other error, prints it and sets `failureStatus`.
 */
export function runCommandLine(help: string, main: () => Promise<void>, failureStatus = 1): void {
  ignoreBrokenPipes();
  main().catch((error: unknown) => {
    if (error instanceof InterruptedError) {
      process.stderr.write(`\n${error.message}\n`);
      // Ends work that does not listen to the interruption, and the programs that it has started.
      process.exit(INTERRUPTED);
    }
    const wrongUsage = isUsageError(error);
    const text = isError(error) && !wrongUsage ? (error.stack ?? error.message) : reasonOf(error);
    process.stderr.write(`${text}\n${wrongUsage ? `\n${help}` : ''}`);
    process.exitCode = wrongUsage ? WRONG_USAGE : failureStatus;
  });
}

function isUsageError(error: unknown): boolean {
  return error instanceof UsageError || errorCodeOf(error)?.startsWith('ERR_PARSE_ARGS') === true;
}

/** Returns the values of an option such as `--only a,b`. Throws a `UsageError` if one of them is unknown. */
export function listOption(option: string, text: string, known: readonly string[]): readonly string[] {
  const values = text.split(',');
  const unknown = values.find((value) => !known.includes(value));
  if (unknown === undefined) return values;
  throw new UsageError(`${option}: there is no ${JSON.stringify(unknown)}; there are: ${known.join(', ')}`);
}
