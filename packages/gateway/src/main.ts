/** Runs the gateway from its command line to its exit code. */

import { parseDaemonCommandLine, runService, statusEndpoint } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { connectToZooKeeper } from '@nodepool/store';
import { Gateway } from './gateway.js';
import { newToken } from './new-token.js';
import { PROGRAM } from './program.js';
import { settingsSource } from './settings/settings-source.js';

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseDaemonCommandLine(PROGRAM, argv);
  if (typeof options === 'number') return options;
  const { gateway: file, generateToken } = options.own;
  if (generateToken !== undefined) {
    const { token, entry } = newToken(generateToken);
    process.stdout.write(`${token}\n\nEntry of the token file, which contains no secret:\n${entry}`);
    return 0;
  }
  return runService({
    name: PROGRAM.name,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: () => statusEndpoint(options.own),
    stopMessage: 'Stopping; leases stay, and other gateways serve them',
    source: settingsSource(file),
    create: (parts, settings) => new Gateway({ ...parts, settings }),
  });
}
