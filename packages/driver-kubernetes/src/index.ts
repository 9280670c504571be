/** Nodepool drivers for Kubernetes and OpenShift. */
export { kubernetes, kubernetesDriver, openshift, openshiftpods } from './driver.js';
export { KubernetesAdapter } from './adapter.js';
export type { KubernetesLabel, KubernetesProvider } from './config.js';
export type { Environment } from './client/kubeconfig.js';
export type { Flavour } from './schema.js';
