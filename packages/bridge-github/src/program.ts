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
    introduction: 'The bridge reads only zookeeper-servers and zookeeper-tls of the configuration (-c).',
    stop: ['stop; jobs continue, also under the next bridge. A second signal stops at once.'],
    example: '-g /etc/nodepool/github.yaml --status-port 8009',
  },
  addOptions: (command) => {
    command.option('-g, --github <file>', 'settings of the bridge', '/etc/nodepool/github.yaml');
    addStatusPort(command, 'metrics and probes', '0.0.0.0');
  },
  readOptions: (command) => command.opts(),
};
