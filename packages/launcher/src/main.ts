import { connectToZooKeeper } from '@nodepool/store';
import { fullyQualifiedHostname, parseDaemonCommandLine, runDaemon } from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { LauncherDaemon } from './daemon.js';
import { PROGRAM } from './program.js';

/** The remedy of a web endpoint that cannot listen. */
const OTHER_ADDRESS = 'choose others with `webapp: {listen_address, port}`, or start with --no-webapp';

/** Runs the launcher until a signal. Resolves with the exit code: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseDaemonCommandLine(PROGRAM, argv);
  if (typeof options === 'number') return options;
  const { webapp, backfillWindow } = options.own;
  // systemd separates several directories with colons.
  const stateDir = options.own.stateDir ?? process.env['STATE_DIRECTORY']?.split(':')[0];
  return runDaemon({
    name: PROGRAM.name,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: (config) =>
      webapp
        ? { port: config.webapp.port, address: config.webapp.listenAddress, otherAddress: OTHER_ADDRESS }
        : undefined,
    stopMessage: 'Stopping; launches in progress will be resumed after a restart or by another launcher',
    make: async (setup) => {
      const fqdn = await fullyQualifiedHostname();
      return new LauncherDaemon({ ...setup, fqdn, stateDir, backfillWindowMs: backfillWindow * 1000 });
    },
  });
}
