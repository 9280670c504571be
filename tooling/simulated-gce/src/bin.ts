#!/usr/bin/env node
/**
 * Starts a simulated Google Compute Engine, prints its address as one line of JSON and runs until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --operation-ms N, --list-lag-ms N, --latency-ms N, --page-size N, --calls-per-second N
 *   --limit METRIC=N   e.g. INSTANCES=5; can be repeated
 */

import { runProgram } from '@nodepool/simulated-cloud';
import { BUCKET, PROJECT, type CloudSettings } from './settings.js';
import { startSimulatedGce, type SimulatedGce } from './start.js';

function limitIn(text: string): readonly [metric: string, limit: number] {
  const [, metric = '', limit = ''] = /^([A-Z0-9_]+)=(\d+)$/.exec(text) ?? [];
  if (metric === '') throw new Error(`--limit takes METRIC=N, e.g. INSTANCES=5, not "${text}"`);
  return [metric, Number(limit)];
}

void runProgram<CloudSettings, SimulatedGce>({
  settings: {
    'boot-ms': 'bootMs',
    'delete-ms': 'deleteMs',
    'operation-ms': 'operationMs',
    'list-lag-ms': 'listLagMs',
    'latency-ms': 'latencyMs',
    'page-size': 'pageSize',
    'calls-per-second': 'callsPerSecond',
  },
  repeated: 'limit',
  async start(options, limits) {
    const parsed = Object.fromEntries(limits.map(limitIn));
    const cloud = await startSimulatedGce(options);
    cloud.setLimits(parsed);
    return cloud;
  },
  describe: ({ url, credentialsFile }) => ({ url, credentialsFile, project: PROJECT, bucket: BUCKET }),
});
