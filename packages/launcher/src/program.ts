/** The command line of `nodepool-launcher`. */

import { packageVersion } from '@nodepool/core';
import { parseDaemonCommandLine, type DaemonOptions, type ProgramOutput } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';
import { BACKFILL_WINDOW_MS } from './context.js';

export const PROGRAM_NAME = 'nodepool-launcher';

export interface LauncherFlags {
  readonly webapp: boolean;
  /** Seconds; see `LauncherContext.backfillWindowMs`. */
  readonly backfillWindow: number;
  /** Directory in which the history survives a restart. */
  readonly stateDir?: string;
}

/** Returns the options, or the exit code if the command line is wrong or only asks for help or the version. */
export function parseCommandLine(
  argv: readonly string[],
  output: ProgramOutput,
): { readonly daemon: DaemonOptions; readonly own: LauncherFlags } | number {
  return parseDaemonCommandLine(
    {
      name: PROGRAM_NAME,
      description: 'Serves node requests: allocates ready nodes or launches new ones, hands them out and deletes them.',
      version: packageVersion(__dirname),
      help: HELP,
      addOptions: (command) =>
        void command
          .option('--no-webapp', 'no web endpoint')
          .option(
            '--backfill-window <seconds>',
            'time for which smaller requests of the same priority may overtake one that does not fit',
            seconds,
            BACKFILL_WINDOW_MS / 1000,
          )
          .option('--state-dir <directory>', 'directory for the history of the last day (default: $STATE_DIRECTORY)'),
      readOptions: (command) => command.opts<LauncherFlags>(),
    },
    argv,
    output,
  );
}

function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0)) throw new InvalidArgumentError('It must be a number of seconds.');
  return value;
}

const HELP = `
Signals:
  SIGINT, SIGTERM, SIGUSR1
                   stop; launches in progress are resumed later. A second signal stops at once.
  SIGHUP           read all configuration files again now.
  SIGUSR2          log all work in progress and start a CPU profile; the next signal writes it
                   beside the log file, or to the working directory.

Example:
  $ nodepool-launcher -c /etc/nodepool/nodepool.yaml -s /etc/nodepool/secure.yaml
`;
