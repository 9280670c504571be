/** `post-upload-hook`: a program of the operator that runs on each uploaded image before nodes are launched from it. */

import { spawn, type ChildProcess } from 'node:child_process';
import { errorCodeOf, reasonOf, type ExternalId, type Logger } from '@nodepool/core';

/** Limit (characters) of a hook's output that is kept. */
const KEPT_LENGTH = 2000;

export interface HookCall {
  readonly command: string;
  readonly provider: string;
  readonly externalId: ExternalId;
  readonly file: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Resolves when the program has ended with 0; rejects with an `Error` that describes any other end. */
export type PostUploadHook = (call: HookCall) => Promise<void>;

export const runPostUploadHook: PostUploadHook = async ({ command, provider, externalId, file, signal, log }) => {
  const id = typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
  let said = '';
  signal.throwIfAborted();
  // The child leads a process group, which is ended as a whole.
  // Without free file descriptors it has no streams, and reports an error.
  const child: ChildProcess = spawn(command, [provider, id, file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const onAbort = (): void => killGroup(child.pid);
  signal.addEventListener('abort', onAbort, { once: true });
  const hear = (piece: Buffer): void => {
    said = (said + piece.toString('utf8')).slice(-KEPT_LENGTH);
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);
  const failure = await new Promise<{ readonly why: string; readonly cause?: unknown } | undefined>((resolve) => {
    child.once('error', (cause) => resolve({ why: `cannot be run: ${reasonOf(cause)}`, cause }));
    child.once('close', (code, killedBy) => {
      resolve(code === 0 ? undefined : { why: `ended ${code === null ? `by ${String(killedBy)}` : `with ${code}`}` });
    });
  });
  signal.removeEventListener('abort', onAbort);
  const output = said.trim();
  if (failure !== undefined) {
    const last = output === '' ? '' : `; its output: ${output}`;
    throw new Error(`the post-upload-hook ${command} ${failure.why}${last}`, { cause: failure.cause });
  }
  log.info('The post-upload-hook has ended', { hook: command, output });
};

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // The process has already ended.
    if (errorCodeOf(error) !== 'ESRCH') throw error;
  }
}
