/**
 * Runs `disk-image-create` in its own process group and with its own folder for temporary files, so that neither
 * processes nor files of an element outlive the build. Its output is written to the build's log; the builder's log gets
 * a line of progress at intervals.
 */

import type { ChildProcess } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { constants as system } from 'node:os';
import { basename, join } from 'node:path';
import { reasonOf, type Clock, type Logger } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { BuildFolders, type BuildFolder } from './build-folders.js';
import { BuildLog, logPath, removeOldLogs } from './build-log.js';
import { endProcesses, RunningBuild, spawnBuild, type Exit } from './build-processes.js';
import { BuildFailedError, type DiskImageCreator, type DiskImageJob } from './disk-image-creator.js';
import { isRunning } from './processes.js';

const INSTALL_DIB = 'install diskimage-builder, or name another command (dib-cmd)';
/** Interval (ms) between lines of progress. */
const PROGRESS_MS = 60_000;

export interface BuildLogSettings {
  readonly folder: string;
  /** Number of logs kept per image; -1 keeps all. */
  readonly retention: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class DibProcesses implements DiskImageCreator {
  private readonly folders: BuildFolders;
  /** Ids of the builds that this process is running. */
  private readonly running = new Set<string>();
  /** The clean-ups in progress, by build id. */
  private readonly cleaning = new Map<string, Promise<void>>();

  /** Calls `settings` for each build, since they follow the configuration. */
  constructor(
    private readonly clock: Clock,
    imagesDir: string,
    private readonly settings: () => BuildLogSettings,
  ) {
    this.folders = new BuildFolders(imagesDir);
  }

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

  async leftovers(): Promise<readonly BuildRef[]> {
    const found: BuildRef[] = [];
    for (const build of await this.folders.list()) {
      if (this.running.has(build.id)) continue;
      const owner = await this.folders.of(build).owner();
      if (owner === undefined || owner.pid === process.pid || !(await isRunning(owner))) found.push(build);
    }
    return found;
  }

  cleanUp(build: BuildRef, log: Logger): Promise<void> {
    const current = this.cleaning.get(build.id) ?? this.endAndRemove(build, log);
    this.cleaning.set(build.id, current);
    return current.finally(() => this.cleaning.delete(build.id));
  }

  private async endAndRemove(build: BuildRef, log: Logger): Promise<void> {
    const folder = this.folders.of(build);
    const reason = await endProcesses(folder, this.clock, log);
    if (reason !== undefined) throw cannotEnd(build, reason);
    await folder.remove();
  }

  /** Resolves with the exit of a build that ended by itself. */
  private async run(job: DiskImageJob, output: BuildLog, log: Logger): Promise<Exit> {
    log.info('Running the build', { command: [job.command, ...job.args].join(' ') });
    const env = { ...process.env, ...job.env };
    const build = { image: job.image, id: job.build };
    this.running.add(build.id);
    try {
      const folder = await this.folders.create(build, env).catch((cause: unknown) => {
        const message = `the folder for temporary files cannot be created: ${reasonOf(cause)}; see TMPDIR in env-vars`;
        throw new BuildFailedError('start', message, { cause });
      });
      try {
        return await this.runIn(folder, env, job, output, log);
      } finally {
        await this.removeRest(build, log);
      }
    } finally {
      this.running.delete(build.id);
    }
  }

  private async runIn(
    folder: BuildFolder,
    env: Environment,
    job: DiskImageJob,
    output: BuildLog,
    log: Logger,
  ): Promise<Exit> {
    const child = await start(job, folder, env);
    const running = new RunningBuild(child, folder, this.clock, log);
    pipe(child, output, job.onOutput);
    const timeout = new AbortController();
    const timer = this.clock.schedule(job.timeoutMs, () => {
      const limit = `build-timeout (${job.timeoutMs / 1000} s)`;
      timeout.abort(new BuildFailedError('timeout', `the build took longer than ${limit}; see ${output.file}`));
    });
    const stopReporting = this.reportProgress(output, log);
    try {
      return await running.endedOrAborted([job.signal, timeout.signal]);
    } finally {
      timer.cancel();
      stopReporting();
      await running.terminate();
    }
  }

  /** Removes what the build has left. Never rejects: the next search for leftovers tries again. */
  private async removeRest(build: BuildRef, log: Logger): Promise<void> {
    try {
      await this.cleanUp(build, log);
    } catch (error) {
      log.error('A build has left processes, mounts or temporary files; retrying', error);
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

async function start(job: DiskImageJob, folder: BuildFolder, env: Environment): Promise<ChildProcess> {
  try {
    await checkExecutable(job.command, env['PATH'] ?? '');
    return await spawnBuild(job, folder, env);
  } catch (cause) {
    throw cannotStart(job, cause);
  }
}

function cannotEnd({ image, id }: BuildRef, reason: string): BuildFailedError {
  return new BuildFailedError(
    'processes',
    `processes of build ${image}-${id} cannot be ended: ${reason}; this builder builds nothing until they have ended: ` +
      'end them, and allow this user "sudo -n kill"',
  );
}

function cannotStart({ command, hint = INSTALL_DIB }: DiskImageJob, cause: unknown): BuildFailedError {
  return new BuildFailedError('start', `${command} cannot be started: ${reasonOf(cause)}; ${hint}`, { cause });
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
function pipe(child: ChildProcess, output: BuildLog, onOutput: DiskImageJob['onOutput']): void {
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (piece: Buffer) => {
      onOutput?.(piece);
      if (!output.write(piece, () => stream.resume())) stream.pause();
    });
    // The process reports its end; errors of the pipe do not matter.
    stream?.on('error', () => stream.destroy());
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
