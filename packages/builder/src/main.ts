import { connectToZooKeeper } from '@nodepool/store';
import { parseDaemonCommandLine, runDaemon, statusEndpoint } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { createBuilderDaemon } from './daemon.js';
import { PROGRAM } from './program.js';

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseDaemonCommandLine(PROGRAM, argv);
  if (typeof options === 'number') return options;
  const { own } = options;
  return runDaemon({
    name: PROGRAM.name,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: () => statusEndpoint(own),
    stopMessage: 'Stopping; waiting for running builds and uploads',
    make: (setup) => createBuilderDaemon({ ...setup, ...own }),
  });
}
