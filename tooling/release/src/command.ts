/** Runs other programs (pnpm, npm, git, node) and includes their output in errors. */

import { execFile } from 'node:child_process';

export interface CommandOptions {
  readonly cwd: string;
  /** Variables to add to this process's environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: five minutes. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const TAIL_LINES = 30;

/** An error for a program that failed, timed out, or could not be started. */
export class CommandError extends Error {
  constructor(
    command: string,
    cwd: string,
    reason: string,
    /** The program's output, standard output first. */
    readonly output: string,
    options: { readonly cause: unknown },
  ) {
    const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
    super(`${command} (in ${cwd}) ${reason}${tail === '' ? '' : `; it said:\n${tail}`}`, options);
    this.name = 'CommandError';
  }
}

/** Runs a program and resolves with its standard output. Rejects with a `CommandError`. */
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

/**
 * Settings that reduce the output of npm and pnpm to what is requested, also if another package manager's lifecycle
 * script started this process.
 */
export const QUIET_INSTALL = {
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  npm_config_update_notifier: 'false',
  npm_config_prefer_offline: 'true',
} as const;
