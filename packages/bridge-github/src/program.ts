/** The command line of `nodepool-github`. */

import { packageVersion } from '@nodepool/core';
import { addStatusPort, type DaemonProgram, type StatusPortFlags } from '@nodepool/daemon';

export interface BridgeFlags extends StatusPortFlags {
  /** The file with the settings. */
  readonly github: string;
}

export const PROGRAM: DaemonProgram<BridgeFlags> = {
  name: 'nodepool-github',
  description: 'Serves jobs of GitHub Actions with nodes: creates runner scale sets, and starts a runner per job.',
  version: packageVersion(__dirname),
  help: {
    introduction:
      'The configuration (-c) needs only zookeeper-servers and zookeeper-tls; the bridge reads nothing else of it.',
    stop: [
      'stop; jobs continue on their nodes, and the next bridge continues with them.',
      'A second signal stops at once.',
    ],
    reload: 'read the configuration and the settings again now.',
    example: '-g /etc/nodepool/github.yaml --status-port 8009',
  },
  addOptions: (command) => {
    command.option('-g, --github <file>', 'settings of the bridge', '/etc/nodepool/github.yaml');
    addStatusPort(command, 'metrics and probes', '0.0.0.0');
  },
  readOptions: (command) => command.opts(),
};
