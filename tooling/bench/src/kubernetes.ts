/** The Kubernetes driver on a simulated cluster in this process: 200 nodes at once, and their calls to the API. */

import { startSimulatedKubernetes, type SimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { LABEL } from './environment.js';

/** Number of nodes that are requested at once. */
export const KUBERNETES_NODES = 200;

/** Boot and deletion time of a pod's namespace (ms): short, so that the calls take the time. */
const TIMES = { bootMs: 200, deleteMs: 200 };

export function startCluster(): Promise<SimulatedKubernetes> {
  return startSimulatedKubernetes({ settings: TIMES });
}

/** Returns the section of a provider whose nodes are pods of the cluster. */
export function sectionOf({ kubeconfig }: SimulatedKubernetes): object {
  // Launchers inherit the environment of this process.
  process.env['KUBECONFIG'] = kubeconfig;
  return {
    name: 'cluster',
    driver: 'kubernetes',
    context: 'admin',
    pools: [{ name: 'main', labels: [{ name: LABEL, type: 'pod', image: 'docker.io/fedora:28' }] }],
  };
}
