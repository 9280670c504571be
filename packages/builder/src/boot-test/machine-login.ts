/** Waits for the ssh server of a test machine, and runs the command of the test there. */

import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { errorCodeOf, sleep, type BootTestConfig, type Clock } from '@nodepool/core';
import { loginOf, runOverSsh } from '@nodepool/daemon/ssh';
import { BuildFailedError } from '../disk-image-creator.js';
import type { Seed } from './cloud-init-seed.js';

const ADDRESS = '127.0.0.1';
const POLL_MS = 2000;
/** Time limit of one attempt to read the host keys, seconds; a machine without KVM answers slowly. */
const KEYSCAN_SECONDS = 20;
/** Time for the seed to be applied after the ssh server answers. */
const LOGIN_MS = 120_000;

const execute = promisify(execFile);

/** Resolves with a port of this host that no program uses at the moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, ADDRESS, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** Resolves with the host keys once the ssh server answers. Rejects with the reason of the signal. */
export async function waitForLogin(port: number, clock: Clock, signal: AbortSignal): Promise<readonly string[]> {
  for (;;) {
    const keys = await scanKeys(port, signal);
    if (keys.length > 0) return keys;
    await sleep(clock, POLL_MS, signal);
  }
}

async function scanKeys(port: number, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const args = ['-T', String(KEYSCAN_SECONDS), '-p', String(port), ADDRESS];
    const { stdout } = await execute('ssh-keyscan', args, { signal });
    return stdout
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(' ').slice(1).join(' '));
  } catch (error) {
    signal.throwIfAborted();
    if (errorCodeOf(error) === 'ENOENT') {
      throw new BuildFailedError(
        'start',
        'ssh-keyscan is not installed (Debian: openssh-client); the boot test needs it',
      );
    }
    // The server does not answer yet.
    return [];
  }
}

export interface MachineCommand {
  readonly port: number;
  readonly username: string;
  readonly hostKeys: readonly string[];
  readonly seed: Seed;
  readonly config: BootTestConfig;
}

/** Runs the command of the test. Rejects with `BuildFailedError` if it fails. */
export async function runCommand(
  { port, username, hostKeys, seed, config }: MachineCommand,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { command, commandTimeoutMs: timeoutMs } = config;
  if (command === undefined) return;
  const login = { address: ADDRESS, connectionPort: port, connectionType: 'ssh', shellType: null };
  const target = loginOf({ ...login, username, hostKeys });
  if ('refused' in target) throw failed(`its command cannot be run: ${target.refused}`);
  const run = { target, identity: seed.identity, clock, signal };
  await loggedIn(run);
  const { status, timedOut, output } = await runOverSsh({ ...run, command, timeoutMs });
  if (timedOut) throw failed(`its command took longer than ${timeoutMs / 1000} s (command-timeout)`);
  if (status === 0) return;
  const last = output.trim().split('\n').at(-1) ?? '';
  throw failed(`its command ended with status ${status}, its last line: ${last.slice(0, 300)}`);
}

/** Resolves once the login works: cloud-init creates the user after the ssh server answers. */
async function loggedIn(run: Omit<Parameters<typeof runOverSsh>[0], 'command' | 'timeoutMs'>): Promise<void> {
  const { clock, signal } = run;
  const end = clock.monotonic() + LOGIN_MS;
  for (;;) {
    const { status, output } = await runOverSsh({ ...run, command: 'true', timeoutMs: LOGIN_MS });
    if (status === 0) return;
    if (clock.monotonic() > end) {
      const last = output.trim().split('\n').at(-1) ?? '';
      throw failed(`the login of its user is refused; does the image have cloud-init? (${last.slice(0, 200)})`);
    }
    await sleep(clock, POLL_MS, signal);
  }
}

export function failed(reason: string): BuildFailedError {
  return new BuildFailedError('boot-test', `the build failed its boot test: ${reason}`);
}
