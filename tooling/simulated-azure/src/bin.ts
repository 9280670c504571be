#!/usr/bin/env node
/**
 * Starts a simulated Azure, prints its address as one line of JSON and runs until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --work-ms N, --latency-ms N, --page-limit N, --retry-after-seconds N,
 *   --calls-per-minute N
 */

import { runProgram } from '@nodepool/simulated-cloud';
import type { CloudSettings } from './settings.js';
import { startSimulatedAzure, type SimulatedAzure } from './start.js';

void runProgram<CloudSettings, SimulatedAzure>({
  settings: {
    'boot-ms': 'bootMs',
    'delete-ms': 'deleteMs',
    'work-ms': 'workMs',
    'latency-ms': 'latencyMs',
    'page-limit': 'pageLimit',
    'retry-after-seconds': 'retryAfterSeconds',
    'calls-per-minute': 'callsPerMinute',
  },
  start: (options) => startSimulatedAzure(options),
  describe: ({ url, authFile }) => ({ url, authFile }),
});
