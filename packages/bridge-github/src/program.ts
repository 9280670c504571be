/** The command line of `nodepool-github`. */

import { packageVersion } from '@nodepool/core';
import { parseDaemonCommandLine, type DaemonOptions, type ProgramOutput } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';

export const PROGRAM_NAME = 'nodepool-github';

/** The remedy of a status port that cannot listen. */
export const OTHER_ADDRESS = 'choose others with --status-port and --status-address';

export interface BridgeFlags {
  /** The file with the settings. */
  readonly github: string;
  /** Port of metrics and probes; undefined for none. */
  readonly statusPort?: number;
  readonly statusAddress: string;
}

/** Returns the options, or the exit code if the command line is wrong or only asks for help or the version. */
export function parseCommandLine(
  argv: readonly string[],
  output: ProgramOutput,
): { readonly daemon: DaemonOptions; readonly own: BridgeFlags } | number {
  return parseDaemonCommandLine(
    {
      name: PROGRAM_NAME,
      description: 'Serves jobs of GitHub Actions with nodes: creates runner scale sets, and starts a runner per job.',
      version: packageVersion(__dirname),
      help: HELP,
      addOptions: (command) =>
        void command
          .option('-g, --github <file>', 'settings of the bridge', '/etc/nodepool/github.yaml')
          .option('--status-port <port>', 'port for metrics and probes (default: off)', port)
          .option('--status-address <address>', 'its address', '0.0.0.0'),
      readOptions: (command) => command.opts<BridgeFlags>(),
    },
    argv,
    output,
  );
}

function port(text: string): number {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || value > 65_535) {
    throw new InvalidArgumentError('It must be a port, 0 to 65535; 0 is any free port.');
  }
  return value;
}

const HELP = `
The bridge reads only zookeeper-servers and zookeeper-tls of the configuration (-c).

Signals:
  SIGINT, SIGTERM, SIGUSR1
                   stop; jobs continue, also under the next bridge. A second signal stops at once.
  SIGHUP           read all configuration files again now.
  SIGUSR2          log all work in progress and start a CPU profile; the next signal writes it
                   beside the log file, or to the working directory.

Example:
  $ nodepool-github -c /etc/nodepool/nodepool.yaml -g /etc/nodepool/github.yaml --status-port 8009
`;
