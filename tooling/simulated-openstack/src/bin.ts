#!/usr/bin/env node
/**
 * Starts a simulated OpenStack, prints its address as one line of JSON and runs until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --latency-ms N, --token-ttl-ms N, --page-limit N
 *   --quota PROJECT.NAME=N   e.g. limited.instances=5; can be repeated
 */

import { integerIn, runProgram } from '@nodepool/simulated-cloud';
import type { SimulatedOpenStack } from './api.js';
import { SAMPLE_QUOTAS, type CloudSettings, type Quota } from './settings.js';
import { startSimulatedOpenStack } from './start.js';

interface QuotaChange {
  readonly project: string;
  readonly change: Partial<Quota>;
}

function readQuota(text: string): QuotaChange {
  const [, project = '', name = '', amount = ''] = /^(\w+)\.(\w+)=(.*)$/.exec(text) ?? [];
  const known = SAMPLE_QUOTAS[project];
  if (known === undefined || !(name in known)) {
    const example = 'e.g. limited.instances=5';
    const projects = Object.keys(SAMPLE_QUOTAS).join(', ');
    throw new Error(`--quota takes PROJECT.NAME=N, ${example}, not "${text}"; projects: ${projects}`);
  }
  return { project, change: { [name]: integerIn('--quota', amount) } };
}

void runProgram<CloudSettings, SimulatedOpenStack>({
  settings: {
    'boot-ms': 'bootMs',
    'delete-ms': 'deleteMs',
    'latency-ms': 'latencyMs',
    'token-ttl-ms': 'tokenTtlMs',
    'page-limit': 'pageLimit',
  },
  repeated: 'quota',
  async start(options, quotas) {
    const changes = quotas.map(readQuota);
    const cloud = await startSimulatedOpenStack(options);
    for (const { project, change } of changes) cloud.quota(project).set(change);
    return cloud;
  },
  describe: ({ url, authUrl, cloudsYaml }) => ({ url, authUrl, cloudsYaml }),
});
