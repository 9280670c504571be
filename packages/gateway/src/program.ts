/** The command line of `nodepool-gateway`. */

import { packageVersion } from '@nodepool/core';
import { addStatusPort, type DaemonProgram, type StatusPortFlags } from '@nodepool/daemon';

export interface GatewayFlags extends StatusPortFlags {
  /** The file with the settings. */
  readonly gateway: string;
  /** Name of a token to generate instead of running the gateway. */
  readonly generateToken?: string;
}

export const PROGRAM: DaemonProgram<GatewayFlags> = {
  name: 'nodepool-gateway',
  description: 'Leases nodes over HTTP to programs that do not use ZooKeeper.',
  version: packageVersion(__dirname),
  help: {
    stop: ['stop; other gateways serve the leases. A second signal stops at once.'],
    example: '-g /etc/nodepool/gateway.yaml --status-port 8008',
  },
  addOptions: (command) => {
    command.option('-g, --gateway <file>', 'settings of the gateway', '/etc/nodepool/gateway.yaml');
    addStatusPort(command, 'metrics and probes', '127.0.0.1');
    command.option('--generate-token <name>', 'print a new token with its entry for the token file');
  },
  readOptions: (command) => command.opts(),
};
