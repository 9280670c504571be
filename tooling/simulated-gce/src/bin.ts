#!/usr/bin/env node
/**
 * Starts a simulated Google Compute Engine, prints one line of JSON that says where it is, and stays until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --operation-ms N, --list-lag-ms N, --latency-ms N, --page-size N, --calls-per-second N
 *   --limit METRIC=N   e.g. INSTANCES=5; can be repeated
 */

import { parseArgs } from 'node:util';
import { BUCKET, PROJECT, type CloudSettings } from './settings.js';
import { startSimulatedGce } from './start.js';

const SETTINGS = {
  'boot-ms': 'bootMs',
  'delete-ms': 'deleteMs',
  'operation-ms': 'operationMs',
  'list-lag-ms': 'listLagMs',
  'latency-ms': 'latencyMs',
  'page-size': 'pageSize',
  'calls-per-second': 'callsPerSecond',
} as const satisfies Record<string, keyof CloudSettings>;

function numberIn(option: string, text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isInteger(value) || value < 0)
    throw new Error(`${option} takes an integer, not "${text}"`);
  return value;
}

function limitIn(text: string): readonly [metric: string, limit: number] {
  const [, metric = '', limit = ''] = /^([A-Z0-9_]+)=(\d+)$/.exec(text) ?? [];
  if (metric === '') throw new Error(`--limit takes METRIC=N, e.g. INSTANCES=5, not "${text}"`);
  return [metric, Number(limit)];
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      port: text,
      'boot-ms': text,
      'delete-ms': text,
      'operation-ms': text,
      'list-lag-ms': text,
      'latency-ms': text,
      'page-size': text,
      'calls-per-second': text,
      limit: { type: 'string', multiple: true },
    },
  });
  const settings: Partial<Record<(typeof SETTINGS)[keyof typeof SETTINGS], number>> = {};
  for (const [option, key] of Object.entries(SETTINGS)) {
    const given = values[option as keyof typeof SETTINGS];
    if (given !== undefined) settings[key] = numberIn(`--${option}`, given);
  }
  const limits = Object.fromEntries((values.limit ?? []).map(limitIn));
  const cloud = await startSimulatedGce({ port: numberIn('--port', values.port ?? '0'), settings });
  cloud.setLimits(limits);
  const ended = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  const { url, credentialsFile } = cloud;
  process.stdout.write(
    `${JSON.stringify({ url, credentialsFile, project: PROJECT, bucket: BUCKET, pid: process.pid })}\n`,
  );
  await ended;
  await cloud.close();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
