/** The command line of `nodepool-gateway`. */

import { packageVersion } from '@nodepool/core';
import { parseDaemonCommandLine, type DaemonOptions, type ProgramOutput } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';

export const PROGRAM_NAME = 'nodepool-gateway';

/** The remedy of a status port that cannot listen. */
export const OTHER_ADDRESS = 'choose others with --status-port and --status-address';

export interface GatewayFlags {
  /** The file with the settings. */
  readonly gateway: string;
  /** Port of metrics and probes; undefined for none. */
  readonly statusPort?: number;
  readonly statusAddress: string;
  /** Name of a token to generate instead of running the gateway. */
  readonly generateToken?: string;
}

/** Returns the options, or the exit code if the command line is wrong or only asks for help or the version. */
export function parseCommandLine(
  argv: readonly string[],
  output: ProgramOutput,
): { readonly daemon: DaemonOptions; readonly own: GatewayFlags } | number {
  return parseDaemonCommandLine(
    {
      name: PROGRAM_NAME,
      description: 'Leases nodes over HTTP to programs that do not use ZooKeeper.',
      version: packageVersion(__dirname),
      help: HELP,
      addOptions: (command) =>
        void command
          .option('-g, --gateway <file>', 'settings of the gateway', '/etc/nodepool/gateway.yaml')
          .option('--status-port <port>', 'port for metrics and probes (default: off)', port)
          .option('--status-address <address>', 'its address', '127.0.0.1')
          .option('--generate-token <name>', 'print a new token with its entry for the token file'),
      readOptions: (command) => command.opts<GatewayFlags>(),
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
Signals:
  SIGINT, SIGTERM, SIGUSR1
                   stop; other gateways serve the leases. A second signal stops at once.
  SIGHUP           read all configuration files again now.
  SIGUSR2          log all work in progress and start a CPU profile; the next signal writes it
                   beside the log file, or to the working directory.

Example:
  $ nodepool-gateway -c /etc/nodepool/nodepool.yaml -g /etc/nodepool/gateway.yaml --status-port 8008
`;
