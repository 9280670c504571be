/** Command line of `nodepool-launcher`. */

import { Command, CommanderError } from 'commander';
import { packageVersion } from './version.js';

/** What the command line says. */
export interface ProgramOptions {
  readonly config: string;
  readonly secure: string | undefined;
  readonly logging: string | undefined;
  readonly debug: boolean;
  readonly pidFile: string | undefined;
  readonly webapp: boolean;
}

/** Where help and complaints go. */
export interface ProgramOutput {
  out(text: string): void;
  err(text: string): void;
}

/** The options, or the exit code of a command line that asks for nothing more (help, version) or is wrong. */
export function parseCommandLine(argv: readonly string[], output: ProgramOutput): ProgramOptions | number {
  const command = new Command('nodepool-launcher')
    .description('Answers node requests: takes ready nodes or launches new ones, hands them out, deletes them.')
    .option('-c, --config <file>', 'configuration', '/etc/nodepool/nodepool.yaml')
    .option('-s, --secure <file>', 'secure file, merged over the configuration')
    .option('-l, --logging <file>', 'logging configuration')
    .option('-d, --debug', 'log everything', false)
    .option('-f, --foreground', 'accepted; the launcher always runs in the foreground')
    .option('-p, --pidfile <file>', 'write the process id there')
    .option('--no-webapp', 'no web endpoint')
    .version(packageVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .allowExcessArguments(false)
    .addHelpText('after', HELP)
    .configureOutput({ writeOut: (text) => output.out(text), writeErr: (text) => output.err(text) })
    .exitOverride();
  try {
    command.parse([...argv]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  const given = command.opts<{
    config: string;
    secure?: string;
    logging?: string;
    debug: boolean;
    pidfile?: string;
    webapp: boolean;
  }>();
  return {
    config: given.config,
    secure: given.secure,
    logging: given.logging,
    debug: given.debug,
    pidFile: given.pidfile,
    webapp: given.webapp,
  };
}

const HELP = `
Signals:
  SIGINT, SIGTERM  stop; launches in progress can be taken up again. A second one stops at once.
  SIGHUP           read the configuration again now.
  SIGUSR2          write to the log what runs and what it waits for, and begin a CPU profile;
                   the next one ends the profile and writes it beside the log.

Example:
  $ nodepool-launcher -c /etc/nodepool/nodepool.yaml -s /etc/nodepool/secure.yaml
`;
