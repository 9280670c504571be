/** The Kubernetes driver on a simulated cluster in this process: 200 nodes at once, and their calls to the API. */

import { dirname } from 'node:path';
import { startSimulatedKubernetes, type SimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { LABEL, type BedOptions } from './bed.js';

/** Number of nodes that are requested at once. */
export const KUBERNETES_NODES = 200;

/** Boot and deletion time of a pod's namespace (ms): short, so that the calls take the time. */
const TIMES = { bootMs: 200, deleteMs: 200 };

export function startCluster(): Promise<SimulatedKubernetes> {
  return startSimulatedKubernetes({ settings: TIMES });
}

/** Returns the configuration of a launcher with one provider, whose nodes are pods of the cluster. */
export function configOf({ kubeconfig }: SimulatedKubernetes): NonNullable<BedOptions['config']> {
  // Launchers inherit the environment of this process.
  process.env['KUBECONFIG'] = kubeconfig;
  return ({ servers, webappPort }) => {
    const [host, port] = servers.split(':');
    return {
      'zookeeper-servers': [{ host, port: Number(port) }],
      webapp: { port: webappPort, listen_address: '127.0.0.1' },
      drivers: [{ name: 'kubernetes', package: dirname(require.resolve('@nodepool/driver-kubernetes/package.json')) }],
      labels: [{ name: LABEL }],
      providers: [
        {
          name: 'cluster',
          driver: 'kubernetes',
          context: 'admin',
          pools: [{ name: 'main', labels: [{ name: LABEL, type: 'pod', image: 'docker.io/fedora:28' }] }],
        },
      ],
    };
  };
}
