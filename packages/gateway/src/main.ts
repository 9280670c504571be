/** Runs the gateway from its command line to its exit code. */

import { connectToZooKeeper } from '@nodepool/store';
import { runDaemon, SettingsError } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { createGatewayDaemon } from './daemon.js';
import { newToken } from './new-token.js';
import { OTHER_ADDRESS, parseCommandLine, PROGRAM_NAME } from './program.js';
import { readSettings, type Settings } from './settings/settings.js';

const print = (text: string): void => void process.stdout.write(text);
const printError = (text: string): void => void process.stderr.write(text);

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseCommandLine(argv, { out: print, err: printError });
  if (typeof options === 'number') return options;
  const { statusPort: port, statusAddress: address, gateway: file, generateToken } = options.own;
  if (generateToken !== undefined) {
    const { token, entry } = newToken(generateToken);
    print(`${token}\n\nEntry of the token file, which contains no secret:\n${entry}`);
    return 0;
  }
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
    stopMessage: 'Stopping; leases stay, and other gateways serve them',
    printError,
    make: (setup) => createGatewayDaemon({ ...setup, ...options.own, settings, file }),
  });
}
