/**
 * Runs `disk-image-create` in its own process group, which is ended as a whole, so that no process of an element
 * outlives the build. Its output is written to the build's log; the builder's log gets a line of progress at intervals.
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { constants as system } from 'node:os';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import { abortReason, errorCodeOf, reasonOf, sleep, type Clock, type Logger } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { BuildLog, logPath, removeOldLogs } from './build-log.js';
import { BuildFailedError, type DiskImageCreator, type DiskImageJob } from './disk-image-creator.js';

/** Time (ms) for a build to end after SIGTERM, and to close its output after its end. */
const GRACE_MS = { term: 10_000, output: 5000 } as const;
/** Interval (ms) between lines of progress. */
const PROGRESS_MS = 60_000;

export interface BuildLogSettings {
  readonly folder: string;
  /** Number of logs kept per image; -1 keeps all. */
  readonly retention: number;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class DibProcesses implements DiskImageCreator {
  /** Calls `settings` for each build, since they follow the configuration. */
  constructor(
    private readonly clock: Clock,
    private readonly settings: () => BuildLogSettings,
  ) {}

  logFile(build: BuildRef): string {
    return logPath(this.settings().folder, build);
  }

  async create(job: DiskImageJob): Promise<void> {
    job.signal.throwIfAborted();
    const { folder, retention } = this.settings();
    const output = await BuildLog.open(folder, { image: job.image, id: job.build }, job.log);
    const log = job.log.with({ build_log: output.file });
    let lastLine = 'The command could not be started';
    try {
      const exit = await this.run(job, output, log);
      lastLine = `Exit code: ${exitCodeOf(exit)}`;
      throwIfFailed(exit, output);
    } catch (error) {
      if (!(error instanceof BuildFailedError && error.failure === 'exit')) lastLine = `Ended: ${reasonOf(error)}`;
      throw error;
    } finally {
      await output.end(lastLine);
      await removeOldLogs(folder, job.image, retention, job.log);
    }
  }

  /** Resolves with the exit of a build that ended by itself. */
  private async run(job: DiskImageJob, output: BuildLog, log: Logger): Promise<Exit> {
    log.info('Running the build', { command: [job.command, ...job.args].join(' ') });
    const child = await start(job);
    const group = new ProcessGroup(child, this.clock);
    pipe(child, output);
    const timeout = new AbortController();
    const timer = this.clock.schedule(job.timeoutMs, () => {
      const limit = `build-timeout (${job.timeoutMs / 1000} s)`;
      timeout.abort(new BuildFailedError('timeout', `the build took longer than ${limit}; see ${output.file}`));
    });
    const stopReporting = this.reportProgress(output, log);
    try {
      return await group.endedOrAborted([job.signal, timeout.signal]);
    } finally {
      timer.cancel();
      stopReporting();
      await group.terminate();
    }
  }

  private reportProgress(output: BuildLog, log: Logger): () => void {
    const startedAt = this.clock.monotonic();
    const report = (): void => {
      const seconds = Math.round((this.clock.monotonic() - startedAt) / 1000);
      log.info('The build is still running', { seconds, output_bytes: output.size, last_line: output.lastLine });
      timer = this.clock.schedule(PROGRESS_MS, report, { background: true });
    };
    let timer = this.clock.schedule(PROGRESS_MS, report, { background: true });
    return () => timer.cancel();
  }
}

/**
 * Shell script that becomes the command, and leaves a guard. The guard ends the process group of the command when the
 * other end of descriptor 3 closes without a line, which also happens if the builder is killed. It is in a session of
 * its own, because `sudo` ignores signals from its own process group.
 */
const GUARDED = `
setsid /bin/sh -c '
read -r _ <&3 && exit
kill -s TERM -- "-$0"
for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -s 0 -- "-$0" || exit; done
kill -s KILL -- "-$0"
' $$ >/dev/null 2>&1 &
exec 3<&-
exec "$@"
`;

async function start({ command, args, env }: DiskImageJob): Promise<ChildProcess> {
  const environment = { ...process.env, ...env };
  try {
    await checkExecutable(command, environment.PATH ?? '');
    const child = spawn('/bin/sh', ['-c', GUARDED, 'sh', command, ...args], {
      // Makes the child the leader of a new process group.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: environment,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return child;
  } catch (cause) {
    throw new BuildFailedError(
      'start',
      `${command} cannot be started: ${reasonOf(cause)}; install diskimage-builder, or name another command (dib-cmd)`,
      { cause },
    );
  }
}

/** Rejects if the program does not exist: a shell's error would look like a failed build. */
async function checkExecutable(command: string, path: string): Promise<void> {
  if (command.includes('/')) return access(command, constants.X_OK);
  for (const folder of path.split(':')) {
    try {
      await access(join(folder, command), constants.X_OK);
      return;
    } catch {
      // Continues with the next folder.
    }
  }
  throw new Error('there is no such command in PATH');
}

/** Writes the output of the build to the log at the pace of the disk. */
function pipe(child: ChildProcess, output: BuildLog): void {
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (piece: Buffer) => {
      if (!output.write(piece, () => stream.resume())) stream.pause();
    });
    // The process reports its end; errors of the pipe do not matter.
    stream?.on('error', () => stream.destroy());
  }
}

/** A child that leads a process group. */
class ProcessGroup {
  private readonly exited: Promise<Exit>;
  private readonly closed: Promise<void>;
  private exit: Exit | undefined;

  constructor(
    private readonly child: ChildProcess,
    private readonly clock: Clock,
  ) {
    const [, , , guard] = child.stdio;
    // The guard may have ended.
    guard?.on('error', () => guard.destroy());
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.exit = { code, signal };
        if (guard instanceof Writable) guard.end('\n');
        // Ends the rest of the group immediately, before the process id can be reused.
        this.signal('SIGKILL');
        resolve(this.exit);
      });
    });
    this.closed = new Promise((resolve) => child.once('close', () => resolve()));
  }

  /** Resolves when the leader has ended by itself; rejects with the reason of the first signal that aborts. */
  endedOrAborted(signals: readonly AbortSignal[]): Promise<Exit> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        for (const signal of signals) signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        const aborted = signals.find((signal) => signal.aborted);
        if (aborted === undefined) return;
        stop();
        reject(abortReason(aborted));
      };
      for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
      onAbort();
      void this.exited.then((exit) => {
        stop();
        resolve(exit);
      });
    });
  }

  /** Ends all processes of the group and waits for the end of the output. */
  async terminate(): Promise<void> {
    if (this.exit === undefined) {
      this.signal('SIGTERM');
      await this.within(GRACE_MS.term, this.exited);
      if (this.isRunning()) this.signal('SIGKILL');
      await this.exited;
    }
    // A process that has left the group may hold the output open forever.
    await this.within(GRACE_MS.output, this.closed);
    for (const stream of this.child.stdio) stream?.destroy();
  }

  private isRunning(): boolean {
    return this.exit === undefined;
  }

  private signal(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // No process is left (ESRCH), or only processes of root, which this process cannot signal (EPERM).
      if (!['ESRCH', 'EPERM'].includes(errorCodeOf(error) ?? '')) throw error;
    }
  }

  private async within(limitMs: number, event: Promise<unknown>): Promise<void> {
    const enough = new AbortController();
    const limit = sleep(this.clock, limitMs, enough.signal).catch(() => undefined);
    await Promise.race([event, limit]);
    enough.abort();
  }
}

/** Returns the exit code as in a shell: 128 plus the number of the signal. */
function exitCodeOf({ code, signal }: Exit): number {
  if (signal === null) return code ?? 1;
  return 128 + system.signals[signal];
}

function throwIfFailed(exit: Exit, output: BuildLog): void {
  const exitCode = exitCodeOf(exit);
  if (exitCode === 0) return;
  const how = exit.signal === null ? `with status ${exitCode}` : `by ${exit.signal}`;
  const last = output.lastLine === '' ? '' : `, its last line: ${output.lastLine}`;
  throw new BuildFailedError('exit', `the build ended ${how}${last}; see ${basename(output.file)}`, { exitCode });
}
