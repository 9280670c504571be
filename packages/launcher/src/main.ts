import { connectToZooKeeper } from '@nodepool/store';
import { fullyQualifiedHostname, runDaemon } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { OTHER_ADDRESS } from './context.js';
import { LauncherDaemon } from './daemon.js';
import { parseCommandLine, PROGRAM_NAME } from './program.js';

const printError = (text: string): void => void process.stderr.write(text);

/** Runs the launcher until a signal. Resolves with the exit code: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseCommandLine(argv, { out: (text) => void process.stdout.write(text), err: printError });
  if (typeof options === 'number') return options;
  const { webapp, backfillWindow } = options.own;
  // systemd separates several directories with colons.
  const stateDir = options.own.stateDir ?? process.env['STATE_DIRECTORY']?.split(':')[0];
  return runDaemon({
    name: PROGRAM_NAME,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: (config) =>
      webapp
        ? { port: config.webapp.port, address: config.webapp.listenAddress, otherAddress: OTHER_ADDRESS }
        : undefined,
    prometheus: webapp,
    stopMessage: 'Stopping; launches in progress will be resumed after a restart or by another launcher',
    printError,
    make: async (setup) => {
      const fqdn = await fullyQualifiedHostname();
      return new LauncherDaemon({ ...setup, webapp, fqdn, stateDir, backfillWindowMs: backfillWindow * 1000 });
    },
  });
}
