/** A simulated Kubernetes API server for development and tests. */
export type { CallFault, CloudCall } from '@nodepool/simulated-cloud';
export { NODE_NAME, podOutcome, warningEvent, type PodOutcome, type PodWarning } from './kubelet.js';
export { ADMIN_TOKEN, DEFAULT_SETTINGS, LIMITED_TOKEN, PROVISIONER_TOKEN, type ClusterSettings } from './settings.js';
export { startSimulatedKubernetes, type SimulatedKubernetes, type SimulatedKubernetesOptions } from './start.js';
export type { StoredObject } from './store.js';
export { httpControls } from '@nodepool/simulated-cloud';
