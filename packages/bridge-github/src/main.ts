/** Runs the bridge from its command line to its exit code. */

import { runDaemon, SettingsError } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { connectToZooKeeper } from '@nodepool/store';
import { createBridgeDaemon } from './daemon.js';
import { OTHER_ADDRESS, parseCommandLine, PROGRAM_NAME } from './program.js';
import { readSettings, type Settings } from './settings/settings.js';

const printError = (text: string): void => void process.stderr.write(text);

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseCommandLine(argv, { out: (text) => void process.stdout.write(text), err: printError });
  if (typeof options === 'number') return options;
  const { statusPort: port, statusAddress: address, github: file } = options.own;
  let settings: Settings;
  try {
    settings = await readSettings(file);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    printError(`${PROGRAM_NAME}: ${error.message}\n`);
    return 1;
  }
  return runDaemon({
    name: PROGRAM_NAME,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: () => (port === undefined ? undefined : { port, address, otherAddress: OTHER_ADDRESS }),
    prometheus: port !== undefined,
    stopMessage: 'Stopping; jobs continue on their nodes, and the next bridge continues with them',
    printError,
    make: (setup) => createBridgeDaemon({ ...setup, ...options.own, settings, file }),
  });
}
