/** Runs other programs (pnpm, npm, git, node) to their end, and says what they said when they fail. */

import { execFile } from 'node:child_process';

export interface CommandOptions {
  readonly cwd: string;
  /** Added to the environment of this process; undefined takes a variable out. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default five minutes. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const TAIL_LINES = 30;

/** A program that ended with another status than 0, or not in time, or could not be started. */
export class CommandError extends Error {
  constructor(
    command: string,
    cwd: string,
    reason: string,
    /** What it wrote, standard output first. */
    readonly output: string,
    options: { readonly cause: unknown },
  ) {
    const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
    super(`${command} (in ${cwd}) ${reason}${tail === '' ? '' : `; it said:\n${tail}`}`, options);
    this.name = 'CommandError';
  }
}

/** Runs a program to its end; resolves with its standard output. Rejects with a `CommandError`. */
export async function run(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const timeout = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return await new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      {
        cwd: options.cwd,
        env: { ...process.env, ...options.env },
        timeout,
        killSignal: 'SIGKILL',
        maxBuffer: MAX_OUTPUT_BYTES,
      },
      (error, stdout, stderr) => {
        if (error === null) {
          resolve(stdout);
          return;
        }
        const reason = error.killed === true ? `did not end within ${timeout} ms` : `failed: ${statusOf(error)}`;
        const line = [command, ...args].join(' ');
        reject(new CommandError(line, options.cwd, reason, stdout + stderr, { cause: error }));
      },
    );
  });
}

function statusOf(error: { readonly code?: unknown; readonly signal?: unknown; readonly message: string }): string {
  if (typeof error.code === 'number') return `exit status ${error.code}`;
  return typeof error.signal === 'string' ? error.signal : error.message;
}

/** Of npm and pnpm, also where a lifecycle script of another package manager started this process: only what was asked for. */
export const QUIET_INSTALL = {
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  npm_config_update_notifier: 'false',
  npm_config_prefer_offline: 'true',
} as const;
