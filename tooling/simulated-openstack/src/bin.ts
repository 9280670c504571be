#!/usr/bin/env node
/**
 * Starts a simulated OpenStack, prints one line of JSON that says where it is, and stays until SIGTERM or SIGINT.
 *
 *   --port N           default: a free one
 *   --boot-ms N, --delete-ms N, --latency-ms N, --token-ttl-ms N, --page-limit N
 *   --quota PROJECT.NAME=N   e.g. limited.instances=5; can be repeated
 */

import { parseArgs } from 'node:util';
import { SAMPLE_QUOTAS, type CloudSettings, type Quota } from './settings.js';
import { startSimulatedOpenStack } from './start.js';

const SETTINGS = {
  'boot-ms': 'bootMs',
  'delete-ms': 'deleteMs',
  'latency-ms': 'latencyMs',
  'token-ttl-ms': 'tokenTtlMs',
  'page-limit': 'pageLimit',
} as const satisfies Record<string, keyof CloudSettings>;

interface QuotaChange {
  readonly project: string;
  readonly change: Partial<Quota>;
}

interface CommandLine {
  readonly port: number;
  readonly settings: Partial<CloudSettings>;
  readonly quotas: readonly QuotaChange[];
}

function readCommandLine(): CommandLine {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      'boot-ms': { type: 'string' },
      'delete-ms': { type: 'string' },
      'latency-ms': { type: 'string' },
      'token-ttl-ms': { type: 'string' },
      'page-limit': { type: 'string' },
      quota: { type: 'string', multiple: true },
    },
  });
  const settings: Partial<Record<(typeof SETTINGS)[keyof typeof SETTINGS], number>> = {};
  for (const [option, key] of Object.entries(SETTINGS)) {
    const text = values[option as keyof typeof SETTINGS];
    if (text !== undefined) settings[key] = numberIn(`--${option}`, text);
  }
  return {
    port: numberIn('--port', values.port ?? '0'),
    settings,
    quotas: (values.quota ?? []).map(readQuota),
  };
}

function readQuota(text: string): QuotaChange {
  const [, project = '', name = '', amount = ''] = /^(\w+)\.(\w+)=(.*)$/.exec(text) ?? [];
  const known = SAMPLE_QUOTAS[project];
  if (known === undefined || !(name in known)) {
    const example = 'e.g. limited.instances=5';
    throw new Error(
      `--quota takes PROJECT.NAME=N, ${example}, not "${text}"; projects: ${Object.keys(SAMPLE_QUOTAS).join(', ')}`,
    );
  }
  return { project, change: { [name]: numberIn('--quota', amount) } };
}

function numberIn(option: string, text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isInteger(value)) throw new Error(`${option} takes an integer, not "${text}"`);
  return value;
}

async function main(): Promise<void> {
  const { port, settings, quotas } = readCommandLine();
  const cloud = await startSimulatedOpenStack({ port, settings });
  for (const { project, change } of quotas) cloud.quota(project).set(change);
  const ended = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  const { url, authUrl, cloudsYaml } = cloud;
  process.stdout.write(`${JSON.stringify({ url, authUrl, cloudsYaml, pid: process.pid })}\n`);
  await ended;
  await cloud.close();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
