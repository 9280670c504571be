import { homedir } from 'node:os';
import { isDriverError, stateMachineDriver, type Driver, type ProviderConfigContext } from '@nodepool/core';
import { KubernetesAdapter } from './adapter.js';
import { clusterAccess, type Environment } from './client/kubeconfig.js';
import { loadProvider, type KubernetesLabel, type KubernetesProvider } from './config.js';
import { schemas, type Flavour } from './schema.js';
import { siteGuideOf } from './site.js';

/**
 * Returns a driver; launchers load `kubernetes`, `openshift` and `openshiftpods`, which have default options.
 * `environment` contains the variables and folders in which the access to clusters is searched.
 */
export function kubernetesDriver(flavour: Flavour, environment: Environment = ownEnvironment()): Driver {
  return stateMachineDriver<KubernetesLabel, KubernetesProvider>({
    name: flavour,
    schema: schemas[flavour],
    siteGuide: siteGuideOf(flavour),
    getProviderConfig: (section, context) => {
      const config = loadProvider(flavour, section, context);
      checkAccess(config, environment, context);
      return config;
    },
    getAdapter: (config) => new KubernetesAdapter(config, environment),
  });
}

/** Reports a missing context while the configuration is read. */
function checkAccess(config: KubernetesProvider, environment: Environment, context: ProviderConfigContext): void {
  if (context.unserved === undefined) return;
  try {
    clusterAccess(config.contextName, environment);
  } catch (error) {
    if (!isDriverError(error)) throw error;
    context.unserved(['context'], error.message);
  }
}

function ownEnvironment(): Environment {
  return { env: process.env, home: homedir(), serviceAccount: '/var/run/secrets/kubernetes.io/serviceaccount' };
}

export const kubernetes: Driver = kubernetesDriver('kubernetes');
export const openshift: Driver = kubernetesDriver('openshift');
export const openshiftpods: Driver = kubernetesDriver('openshiftpods');
