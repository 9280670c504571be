/** The command line of `nodepool-launcher`. */

import { packageVersion } from '@nodepool/core';
import type { DaemonProgram } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';
import { BACKFILL_WINDOW_MS } from './context.js';

export interface LauncherFlags {
  readonly webapp: boolean;
  /** Seconds; see `LauncherContext.backfillWindowMs`. */
  readonly backfillWindow: number;
  /** Directory in which the history survives a restart. */
  readonly stateDir?: string;
}

export const PROGRAM: DaemonProgram<LauncherFlags> = {
  name: 'nodepool-launcher',
  description: 'Serves node requests: allocates ready nodes or launches new ones, hands them out and deletes them.',
  version: packageVersion(__dirname),
  help: {
    stop: ['stop; launches in progress are resumed later. A second signal stops at once.'],
    example: '-s /etc/nodepool/secure.yaml',
  },
  addOptions: (command) => {
    command
      .option('--no-webapp', 'no web endpoint')
      .option(
        '--backfill-window <seconds>',
        'time for which smaller requests of the same priority may overtake one that does not fit',
        seconds,
        BACKFILL_WINDOW_MS / 1000,
      )
      .option('--state-dir <directory>', 'directory for the history of the last day (default: $STATE_DIRECTORY)');
  },
  readOptions: (command) => command.opts(),
};

function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0)) throw new InvalidArgumentError('It must be a number of seconds.');
  return value;
}
