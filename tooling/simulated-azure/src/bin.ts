#!/usr/bin/env node
/**
 * Starts a simulated Azure, prints one line of JSON that says where it is, and stays until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --work-ms N, --latency-ms N, --page-limit N, --retry-after-seconds N, --calls-per-minute N
 */

import { parseArgs } from 'node:util';
import type { CloudSettings } from './settings.js';
import { startSimulatedAzure } from './start.js';

const SETTINGS = {
  'boot-ms': 'bootMs',
  'delete-ms': 'deleteMs',
  'work-ms': 'workMs',
  'latency-ms': 'latencyMs',
  'page-limit': 'pageLimit',
  'retry-after-seconds': 'retryAfterSeconds',
  'calls-per-minute': 'callsPerMinute',
} as const satisfies Record<string, keyof CloudSettings>;

function readCommandLine(): { readonly port: number; readonly settings: Partial<CloudSettings> } {
  const names = ['port', ...Object.keys(SETTINGS)];
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  });
  const settings: Partial<Record<keyof CloudSettings, number>> = {};
  for (const [option, key] of Object.entries(SETTINGS)) {
    const text = values[option];
    if (typeof text === 'string') settings[key] = numberIn(`--${option}`, text);
  }
  const { port } = values;
  return { port: numberIn('--port', typeof port === 'string' ? port : '0'), settings };
}

function numberIn(option: string, text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isInteger(value)) throw new Error(`${option} takes an integer, not "${text}"`);
  return value;
}

async function main(): Promise<void> {
  const cloud = await startSimulatedAzure(readCommandLine());
  const ended = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  const { url, authFile } = cloud;
  process.stdout.write(`${JSON.stringify({ url, authFile, pid: process.pid })}\n`);
  await ended;
  await cloud.close();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
