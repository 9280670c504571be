/** A simulated cluster, and sections of providers on it, as the tests of this package use them. */

import type { JsonObject } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';
import {
  startSimulatedKubernetes,
  type ClusterSettings,
  type SimulatedKubernetes,
} from '@nodepool/simulated-kubernetes';
import type { Environment } from '../src/client/kubeconfig.js';
import type { Flavour } from '../src/index.js';

export const PROVIDER = 'test';
/** Pool, and for `openshiftpods` also the project of the pods. */
export const POOL = 'main';

export interface OpenCluster {
  readonly time: TestTime;
  readonly cluster: SimulatedKubernetes;
  readonly environment: Environment;
}

/** Returns an environment with one kubeconfig file. */
export function environmentOf(kubeconfig: string): Environment {
  return { env: { KUBECONFIG: kubeconfig }, home: '/nowhere', serviceAccount: '/nowhere' };
}

/** Starts a cluster on simulated time. */
export async function openCluster(flavour: Flavour, settings: Partial<ClusterSettings> = {}): Promise<OpenCluster> {
  const time = simulatedTime();
  const openshift = flavour === 'openshift';
  const options = { clock: time.clock, random: seededRandom(1), settings: { openshift, ...settings } };
  const cluster = await startSimulatedKubernetes(options);
  if (flavour === 'openshiftpods') {
    cluster.add('namespaces', { apiVersion: 'v1', kind: 'Namespace', status: { phase: 'Active' } }, POOL);
    cluster.add('serviceaccounts', { apiVersion: 'v1', kind: 'ServiceAccount' }, 'default', POOL);
  }
  return { time, cluster, environment: environmentOf(cluster.kubeconfig) };
}

/** Returns a provider section with a pool `main` and a label `pod`; `label` replaces keys of the label. */
export function section(flavour: Flavour, label: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return {
    name: PROVIDER,
    driver: flavour,
    // The account of an OpenShift cluster has no more rights than the documentation demands.
    context: flavour === 'openshift' ? 'provisioner' : 'admin',
    pools: [
      {
        name: POOL,
        labels: [
          {
            name: 'pod',
            ...(flavour === 'openshiftpods' ? {} : { type: 'pod' }),
            image: 'docker.io/fedora:28',
            cpu: 2,
            memory: 1024,
            ...label,
          },
        ],
      },
    ],
    ...more,
  };
}
