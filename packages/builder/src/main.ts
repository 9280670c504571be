import { connectToZooKeeper } from '@nodepool/store';
import { runDaemon } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { createBuilderDaemon } from './daemon.js';
import { OTHER_ADDRESS, parseCommandLine, PROGRAM_NAME } from './program.js';

const printError = (text: string): void => void process.stderr.write(text);

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseCommandLine(argv, { out: (text) => void process.stdout.write(text), err: printError });
  if (typeof options === 'number') return options;
  const { statusPort: port, statusAddress: address } = options.own;
  return runDaemon({
    name: PROGRAM_NAME,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: () => (port === undefined ? undefined : { port, address, otherAddress: OTHER_ADDRESS }),
    prometheus: port !== undefined,
    stopMessage: 'Stopping; waiting for running builds and uploads',
    printError,
    make: (setup) => createBuilderDaemon({ ...setup, ...options.own }),
  });
}
