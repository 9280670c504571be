/** Runs one command of the configuration on a machine over ssh, with a limit of its time and its output. */

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@nodepool/core';
import { posix, SSH_FAILED, sshOptions } from './options.js';
import type { SshTarget } from './target.js';

/** Limit (characters) of the end of the output that is kept. */
const OUTPUT_LENGTH = 4000;

export interface RemoteCommand {
  readonly target: SshTarget;
  /** File with the private key; undefined for those of the agent and of `~/.ssh`. */
  readonly identity: string | undefined;
  /** Script for a POSIX shell. */
  readonly command: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

export interface RemoteResult {
  /** `SSH_FAILED` if ssh failed. */
  readonly status: number;
  readonly timedOut: boolean;
  /** The end of stdout and stderr together. */
  readonly output: string;
}

/** Resolves with the end of the command. Rejects if ssh cannot be started, and with the reason of the signal. */
export async function runOverSsh(run: RemoteCommand): Promise<RemoteResult> {
  const { target, identity, command, timeoutMs, signal, clock } = run;
  signal.throwIfAborted();
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-ssh-'));
  try {
    const knownHosts = join(folder, 'known_hosts');
    await writeFile(knownHosts, `${target.knownHosts.join('\n')}\n`, { mode: 0o600 });
    const { user, port, address } = target;
    const login = ['-T', '-p', String(port), '-l', user, '--', address, posix(command)];
    const child = spawn('ssh', [...sshOptions(knownHosts, identity), ...login], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (piece: Buffer): void => {
      output = (output + piece.toString('utf8')).slice(-OUTPUT_LENGTH);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    let timedOut = false;
    const end = (): void => void child.kill('SIGKILL');
    const timer = clock.schedule(timeoutMs, () => {
      timedOut = true;
      end();
    });
    signal.addEventListener('abort', end, { once: true });
    try {
      const status = await new Promise<number>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', (code) => resolve(code ?? SSH_FAILED));
      });
      signal.throwIfAborted();
      return { status, timedOut, output };
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', end);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
