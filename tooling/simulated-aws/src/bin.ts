#!/usr/bin/env node
/**
 * Starts a simulated AWS, prints its address and credentials as one line of JSON and runs until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --pending-ms N, --shutting-down-ms N, --resource-ms N, --import-ms N, --read-lag-ms N, --latency-ms N,
 *   --page-size N
 *   --quota CODE=N     e.g. L-1216C47A=64; can be repeated
 */

import { runProgram } from '@nodepool/simulated-cloud';
import type { SimulatedAws } from './api.js';
import { BUCKET, REGION, type AwsSettings } from './settings.js';
import { startSimulatedAws } from './start.js';

function quotaIn(text: string): readonly [code: string, value: number] {
  const [, code = '', value = ''] = /^(L-[0-9A-F]{8})=(\d+)$/.exec(text) ?? [];
  if (code === '') throw new Error(`--quota takes CODE=N, e.g. L-1216C47A=64, not "${text}"`);
  return [code, Number(value)];
}

void runProgram<AwsSettings, SimulatedAws>({
  settings: {
    'pending-ms': 'pendingMs',
    'shutting-down-ms': 'shuttingDownMs',
    'resource-ms': 'resourceMs',
    'import-ms': 'importMs',
    'read-lag-ms': 'readLagMs',
    'latency-ms': 'latencyMs',
    'page-size': 'pageSize',
  },
  repeated: 'quota',
  async start(options, quotas) {
    const parsed = quotas.map(quotaIn);
    const cloud = await startSimulatedAws(options);
    for (const [code, value] of parsed) cloud.setQuota(code, value);
    return cloud;
  },
  describe: ({ url, credentials, subnets, securityGroups, publicImageId, queueUrl }) => ({
    ...{ url, ...credentials, region: REGION, bucket: BUCKET, subnets, securityGroups },
    ...{ publicImageId, queueUrl },
  }),
});
