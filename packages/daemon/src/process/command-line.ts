/** The command line of a daemon: the common options and the program's own. */

import { Command, CommanderError } from 'commander';

/** The options that all daemons have. */
export interface DaemonOptions {
  readonly config: string;
  readonly secure: string | undefined;
  readonly logging: string | undefined;
  readonly debug: boolean;
  readonly pidFile: string | undefined;
}

/** A daemon's command line. `Own`: the values of the program's own options. */
export interface DaemonProgram<Own> {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Printed after the options. */
  readonly help: {
    readonly introduction?: string;
    /** Lines that describe the stop by a signal. */
    readonly stop: readonly string[];
    /** Options of the example, after `-c`. */
    readonly example: string;
  };
  /** Adds the program's own options. */
  readonly addOptions: (command: Command) => void;
  /** Reads the program's own options. */
  readonly readOptions: (command: Command) => Own;
}

/** Receives help and usage errors. */
export interface ProgramOutput {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** The standard output and the standard error of this process. */
export const processOutput: ProgramOutput = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

/** Returns the options, or the exit code if the command line only asks for help or the version, or is wrong. */
export function parseDaemonCommandLine<Own>(
  program: DaemonProgram<Own>,
  argv: readonly string[],
  output = processOutput,
): { readonly daemon: DaemonOptions; readonly own: Own } | number {
  const command = new Command(program.name)
    .description(program.description)
    .option('-c, --config <file>', 'configuration', '/etc/nodepool/nodepool.yaml')
    .option('-s, --secure <file>', 'secure file, merged over the configuration')
    .option('-l, --logging <file>', 'logging configuration')
    .option('-d, --debug', 'log everything', false)
    .option('-f, --foreground', 'no effect, for compatibility')
    .option('-p, --pidfile <file>', 'file for the process id');
  program.addOptions(command);
  command
    .version(program.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .allowExcessArguments(false)
    .addHelpText('after', helpOf(program))
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

function helpOf({ name, help }: Pick<DaemonProgram<unknown>, 'name' | 'help'>): string {
  const { introduction, stop, example } = help;
  return `${introduction === undefined ? '' : `\n${introduction}\n`}
Signals:
  SIGINT, SIGTERM, SIGUSR1
${stop.map((line) => `                   ${line}`).join('\n')}
  SIGHUP           read all configuration files again now.
  SIGUSR2          log all work in progress and start a CPU profile; the next signal writes it
                   beside the log file, or to the working directory.

Example:
  $ ${name} -c /etc/nodepool/nodepool.yaml ${example}
`;
}
