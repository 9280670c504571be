/** From the command line to the exit code. */

import { runDaemon } from '@nodepool/core';
import { LauncherDaemon } from './daemon.js';
import { parseCommandLine, PROGRAM_NAME } from './program.js';

const complain = (text: string): void => void process.stderr.write(text);

/** Runs until a signal says stop. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = parseCommandLine(argv, { out: (text) => void process.stdout.write(text), err: complain });
  if (typeof options === 'number') return options;
  const { webapp, backfillWindow } = options.own;
  return runDaemon({
    name: PROGRAM_NAME,
    options: options.daemon,
    prometheus: webapp,
    stopMessage: 'Stopping; launches in progress are left to be taken up again',
    complain,
    make: (setup) => new LauncherDaemon({ ...setup, webapp, backfillWindowMs: backfillWindow * 1000 }),
  });
}
