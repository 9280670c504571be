import { packageVersion } from '@nodepool/core';
import { parseDaemonCommandLine, type DaemonOptions, type ProgramOutput } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';

export const PROGRAM_NAME = 'nodepool-builder';

/** The remedy of a web endpoint that cannot listen. */
export const OTHER_ADDRESS = 'choose others with --status-port and --status-address';

export interface BuilderFlags {
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
  /** Port of the web endpoint; undefined for none. */
  readonly statusPort?: number;
  readonly statusAddress: string;
}

/** Returns the options, or the exit code if the command line only asks for help or the version, or is wrong. */
export function parseCommandLine(
  argv: readonly string[],
  output: ProgramOutput,
): { readonly daemon: DaemonOptions; readonly own: BuilderFlags } | number {
  return parseDaemonCommandLine(
    {
      name: PROGRAM_NAME,
      description: 'Builds disk images, uploads them to clouds, and deletes old images.',
      version: packageVersion(__dirname),
      help: HELP,
      addOptions: (command) =>
        void command
          .option('--build-workers <number>', 'limit of simultaneous builds', count, 1)
          .option('--upload-workers <number>', 'limit of simultaneous uploads', count, 4)
          .option('--status-port <port>', 'port for status, metrics and probes (default: off)', port)
          .option('--status-address <address>', 'its address', '0.0.0.0'),
      readOptions: (command) => command.opts<BuilderFlags>(),
    },
    argv,
    output,
  );
}

function count(text: string): number {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('It must be a number, 0 or more.');
  return value;
}

function port(text: string): number {
  const value = count(text);
  if (value > 65_535) throw new InvalidArgumentError('It must be a port, 0 to 65535; 0 is any free port.');
  return value;
}

const HELP = `
Signals:
  SIGINT, SIGTERM, SIGUSR1
                   stop after the running builds and uploads, perhaps hours. A second signal aborts them,
                   a third one ends the program at once.
  SIGHUP           read all configuration files again now.
  SIGUSR2          log all work in progress and start a CPU profile; the next signal writes it
                   beside the log file, or to the working directory.

Example:
  $ nodepool-builder -c /etc/nodepool/nodepool.yaml -s /etc/nodepool/secure.yaml --upload-workers 8
`;
