/** The command line of a daemon: the options that all of them have, and its own. */

import { Command, CommanderError } from 'commander';

/** What every daemon is told. */
export interface DaemonOptions {
  readonly config: string;
  readonly secure: string | undefined;
  readonly logging: string | undefined;
  readonly debug: boolean;
  readonly pidFile: string | undefined;
}

/** `Own`: what the program's own options say. */
export interface DaemonProgram<Own> {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Printed after the options. */
  readonly help: string;
  /** Adds the program's own options. */
  readonly addOptions: (command: Command) => void;
  /** Reads the program's own options. */
  readonly readOptions: (command: Command) => Own;
}

/** Where help and complaints go. */
export interface ProgramOutput {
  out(text: string): void;
  err(text: string): void;
}

/** The options, or the exit code of a command line that asks for nothing more (help, version) or is wrong. */
export function parseDaemonCommandLine<Own>(
  program: DaemonProgram<Own>,
  argv: readonly string[],
  output: ProgramOutput,
): { readonly daemon: DaemonOptions; readonly own: Own } | number {
  const command = new Command(program.name)
    .description(program.description)
    .option('-c, --config <file>', 'configuration', '/etc/nodepool/nodepool.yaml')
    .option('-s, --secure <file>', 'secure file, merged over the configuration')
    .option('-l, --logging <file>', 'logging configuration')
    .option('-d, --debug', 'log everything', false)
    .option('-f, --foreground', 'accepted; it always runs in the foreground')
    .option('-p, --pidfile <file>', 'write the process id there');
  program.addOptions(command);
  command
    .version(program.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .allowExcessArguments(false)
    .addHelpText('after', program.help)
    .configureOutput({ writeOut: (text) => output.out(text), writeErr: (text) => output.err(text) })
    .exitOverride();
  try {
    command.parse([...argv]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  const { config, secure, logging, debug, pidfile } = command.opts<
    Omit<DaemonOptions, 'pidFile'> & { readonly pidfile?: string }
  >();
  return { daemon: { config, secure, logging, debug, pidFile: pidfile }, own: program.readOptions(command) };
}
