#!/usr/bin/env node
/**
 * Starts a simulated cluster, prints its address as one line of JSON and runs until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --controller-ms N, --latency-ms N, --bookmark-ms N, --history N
 *   --with openshift   adds the projects of OpenShift
 */

import { runProgram } from '@nodepool/simulated-cloud';
import type { ClusterSettings } from './settings.js';
import { startSimulatedKubernetes, type SimulatedKubernetes } from './start.js';

void runProgram<ClusterSettings, SimulatedKubernetes>({
  settings: {
    'boot-ms': 'bootMs',
    'delete-ms': 'deleteMs',
    'controller-ms': 'controllerMs',
    'latency-ms': 'latencyMs',
    'bookmark-ms': 'bookmarkMs',
    history: 'history',
  },
  repeated: 'with',
  start: ({ port, settings }, features) => {
    const unknown = features.find((feature) => feature !== 'openshift');
    if (unknown !== undefined) throw new Error(`--with takes openshift, not "${unknown}"`);
    return startSimulatedKubernetes({ port, settings: { ...settings, openshift: features.length > 0 } });
  },
  describe: ({ url, kubeconfig }) => ({ url, kubeconfig }),
});
