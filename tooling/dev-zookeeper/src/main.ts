/**
 * Starts ZooKeeper, prints its address as one line of JSON, and runs until SIGTERM or SIGINT. If a command follows
 * `--`, runs that command with `ZOOKEEPER_SERVERS` in its environment instead and exits with its exit status. Options:
 * `--ensemble N`, `--tls`, `--tick-time MS`, `--max-session-timeout MS`.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { startZooKeeper, type StartOptions } from './zookeeper.js';

function readArguments(): { readonly options: StartOptions; readonly command: readonly string[] } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ensemble: { type: 'string' },
      tls: { type: 'boolean' },
      'tick-time': { type: 'string' },
      'max-session-timeout': { type: 'string' },
    },
  });
  const longest = values['max-session-timeout'];
  const options = {
    ensembleSize: positiveInteger('--ensemble', values.ensemble ?? '1'),
    tickTime: positiveInteger('--tick-time', values['tick-time'] ?? '2000'),
    tls: values.tls ?? false,
    settings: longest === undefined ? {} : { maxSessionTimeout: positiveInteger('--max-session-timeout', longest) },
  };
  return { options, command: positionals };
}

function positiveInteger(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a positive number, not "${text}"`);
  return value;
}

async function main(): Promise<void> {
  const { options, command } = readArguments();
  const zookeeper = await startZooKeeper(options);
  if (command.length > 0) {
    try {
      process.exitCode = await run(command, zookeeper.servers);
    } finally {
      await zookeeper.stop();
    }
    return;
  }
  const { servers, tlsServers, tls } = zookeeper;
  // Listeners do not keep the process alive; the servers' pipes do, until the servers end.
  const ended = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  process.stdout.write(`${JSON.stringify({ servers, tlsServers, tls, pid: process.pid })}\n`);
  await ended;
  await zookeeper.stop();
}

/** Returns the exit status of the command, or 1 if a signal ended it. */
async function run([program = '', ...args]: readonly string[], servers: string): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ZOOKEEPER_SERVERS: servers } });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
