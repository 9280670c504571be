/**
 * Starts ZooKeeper, prints one JSON line that says where, and stays until SIGTERM or SIGINT.
 * Options: `--ensemble N`, `--tls`, `--tick-time MS`.
 */

import { parseArgs } from 'node:util';
import { startZooKeeper, type StartOptions } from './zookeeper.js';

function options(): StartOptions {
  const { values } = parseArgs({
    options: { ensemble: { type: 'string' }, tls: { type: 'boolean' }, 'tick-time': { type: 'string' } },
  });
  return {
    ensembleSize: positiveInteger('--ensemble', values.ensemble ?? '1'),
    tickTime: positiveInteger('--tick-time', values['tick-time'] ?? '2000'),
    tls: values.tls ?? false,
  };
}

function positiveInteger(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a positive number, not "${text}"`);
  return value;
}

async function main(): Promise<void> {
  const zookeeper = await startZooKeeper(options());
  const { servers, tlsServers, tls } = zookeeper;
  // The listeners keep the process alive only together with the servers' pipes, which are open until they end.
  const ended = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  process.stdout.write(`${JSON.stringify({ servers, tlsServers, tls, pid: process.pid })}\n`);
  await ended;
  await zookeeper.stop();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
