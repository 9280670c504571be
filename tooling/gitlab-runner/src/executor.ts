/** One executor of the runner: the calls of the driver for one attempt to prepare a job, and for its stages. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@nodepool/core';
import { readConfigOutput, type ConfigOutput } from './config-output.js';
import { runDriver, type DriverExit, type RunningDriver } from './driver-process.js';
import { BuildFailure, SystemFailure } from './failures.js';
import type { DriverCall, Job, Stage, Variable } from './job.js';
import { scriptOf } from './shell-script.js';
import { within } from './time-limit.js';
import { jobResponse, projectDirOf, valueOf, variablesOf, type RunnerIdentity } from './variables.js';

/** Keys of `[runners.custom]` in `config.toml`, with times in milliseconds. */
export interface CustomConfig {
  readonly configExec?: readonly [string, ...string[]];
  readonly prepareExec?: readonly [string, ...string[]];
  readonly runExec: readonly [string, ...string[]];
  readonly cleanupExec?: readonly [string, ...string[]];
  readonly configExecTimeoutMs?: number;
  readonly prepareExecTimeoutMs?: number;
  readonly cleanupExecTimeoutMs?: number;
  readonly gracefulKillTimeoutMs?: number;
  readonly forceKillTimeoutMs?: number;
}

export interface RunnerConfig {
  readonly custom: CustomConfig;
  readonly buildsDir?: string;
  readonly cacheDir?: string;
  readonly runnerId?: number;
  readonly serverUrl?: string;
  /** Environment of the runner's process, which drivers inherit. */
  readonly env: Readonly<Record<string, string>>;
  /** Wait between attempts to prepare (ms). Default 3 s. */
  readonly preparationRetryMs?: number;
  /** Exit codes that the driver has to use; the documentation reserves their values to the runner. */
  readonly buildFailureExitCode?: number;
  readonly systemFailureExitCode?: number;
}

export type Phase = DriverCall['phase'];

/** Receiver of the executor's reports. */
export interface ExecutorReports {
  readonly log: (text: string) => void;
  readonly call: (call: DriverCall) => void;
  readonly violation: (message: string) => void;
  readonly started: (phase: Phase, stage: Stage | undefined, running: RunningDriver) => void;
}

const HOUR_MS = 3_600_000;
const GRACEFUL_KILL_MS = 600_000;
const FORCE_KILL_MS = 10_000;
const INTEGER_FILE = /^-?\d+\r?\n?$/;

export class Executor {
  private readonly tempDir = mkdtempSync(join(tmpdir(), 'custom-executor'));
  private readonly responseFile = join(this.tempDir, 'response.json');
  private readonly exitCodeFile = join(this.tempDir, 'build_exit_code');
  private readonly identity: RunnerIdentity;
  private settings: ConfigOutput = {};
  /** Value of `CI_JOB_STATUS`, which the runner changes before `after_script`. */
  status = 'running';

  constructor(
    private readonly config: RunnerConfig,
    private readonly job: Job,
    concurrentId: number,
    private readonly timeoutMs: number,
    private readonly reports: ExecutorReports,
  ) {
    const { runnerId = 12, serverUrl = 'https://gitlab.example.org' } = config;
    this.identity = { id: runnerId, shortToken: 'x7Zq-9abc', concurrentId, serverUrl };
    writeFileSync(this.responseFile, `${JSON.stringify(jobResponse(job, timeoutMs))}\n`, { mode: 0o600 });
  }

  /** Calls `config_exec` and `prepare_exec`. */
  async prepare(aborted: AbortSignal): Promise<void> {
    const { configExec, prepareExec, configExecTimeoutMs = HOUR_MS } = this.config.custom;
    const { prepareExecTimeoutMs = HOUR_MS } = this.config.custom;
    if (configExec !== undefined) {
      const { stdout } = await this.call('config', undefined, configExec, within(aborted, configExecTimeoutMs));
      this.settings = readConfigOutput(stdout, this.reports.violation);
    }
    const { name, version } = this.settings.driver ?? {};
    const driver = name === undefined ? '' : ` with driver ${name}${version === undefined ? '' : ` ${version}`}`;
    this.reports.log(`Using Custom executor${driver}...\n`);
    if (prepareExec === undefined) return;
    await this.call('prepare', undefined, prepareExec, within(aborted, prepareExecTimeoutMs));
  }

  /** Calls `run_exec` with the script of a stage, unless the stage has nothing to do. */
  async run(stage: Stage, aborted: AbortSignal): Promise<void> {
    const variables = this.variables();
    const script = scriptOf(stage, {
      job: this.job,
      variables,
      directories: this.directories(),
      hostname: this.settings.hostname,
      trace: valueOf(variables, 'CI_DEBUG_TRACE') === 'true',
    });
    if (script === undefined) return;
    const folder = mkdtempSync(join(this.tempDir, 'script'));
    const file = join(folder, 'script');
    writeFileSync(file, script, { mode: 0o700 });
    const [executable, ...args] = this.config.custom.runExec;
    await this.call('run', stage, [executable, ...args, file, stage], aborted);
  }

  /** Calls `cleanup_exec`, whose result does not change the job's, and removes the executor's files. */
  async cleanup(): Promise<void> {
    const { cleanupExec, cleanupExecTimeoutMs = HOUR_MS } = this.config.custom;
    try {
      if (cleanupExec === undefined) return;
      const overdue = AbortSignal.timeout(cleanupExecTimeoutMs);
      const { stderr } = await this.call('cleanup', undefined, cleanupExec, overdue);
      if (stderr !== '') this.reports.violation(`cleanup_exec succeeded and wrote a warning: ${stderr.trim()}`);
    } catch (error) {
      this.reports.log(`Cleanup script failed: ${String(error)}\n`);
      this.reports.violation(`cleanup_exec failed: ${String(error)}`);
    } finally {
      rmSync(this.tempDir, { recursive: true, force: true });
    }
  }

  private directories(): { readonly builds: string; readonly cache: string; readonly project: string } {
    const builds = this.settings.buildsDir ?? this.config.buildsDir ?? '/builds';
    const project = projectDirOf(builds, this.job, this.identity, this.settings.buildsDirIsShared ?? false);
    return { builds, cache: this.settings.cacheDir ?? this.config.cacheDir ?? '/cache', project };
  }

  private variables(): Variable[] {
    const shared = this.settings.buildsDirIsShared ?? false;
    const options = { shared, status: this.status, timeoutMs: this.timeoutMs };
    return variablesOf(this.job, this.identity, this.directories(), options);
  }

  private environment(): Record<string, string> {
    const { buildFailureExitCode = 1, systemFailureExitCode = 2 } = this.config;
    return {
      ...this.config.env,
      TMPDIR: this.tempDir,
      BUILD_FAILURE_EXIT_CODE: String(buildFailureExitCode),
      SYSTEM_FAILURE_EXIT_CODE: String(systemFailureExitCode),
      BUILD_EXIT_CODE_FILE: this.exitCodeFile,
      JOB_RESPONSE_FILE: this.responseFile,
      ...this.settings.jobEnv,
      ...Object.fromEntries(this.variables().map(({ key, value }) => [`CUSTOM_ENV_${key}`, value])),
      CUSTOM_ENV_CI_JOB_SERVICES: '',
    };
  }

  private async call(
    phase: Phase,
    stage: Stage | undefined,
    [executable, ...args]: readonly [string, ...string[]],
    aborted: AbortSignal,
  ): Promise<{ readonly stdout: string; readonly stderr: string }> {
    const start = systemClock.monotonic();
    const printed = { stdout: '', stderr: '' };
    const logged = (text: string): void => {
      if (phase !== 'cleanup') this.reports.log(text);
    };
    const { gracefulKillTimeoutMs = GRACEFUL_KILL_MS, forceKillTimeoutMs = FORCE_KILL_MS } = this.config.custom;
    mkdirSync(this.tempDir, { recursive: true });
    const exit = await runDriver(
      {
        executable,
        args,
        cwd: this.tempDir,
        env: this.environment(),
        gracefulKillMs: gracefulKillTimeoutMs,
        forceKillMs: forceKillTimeoutMs,
        onStdout: (text) => {
          printed.stdout += text;
          if (phase !== 'config') logged(text);
        },
        onStderr: (text) => {
          printed.stderr += text;
          logged(text);
        },
      },
      aborted,
      (running) => this.reports.started(phase, stage, running),
    );
    const { code, signal } = exit;
    const of = stage === undefined ? {} : { stage };
    this.reports.call({ phase, ...of, code, signal, ...printed, durationMs: systemClock.monotonic() - start });
    this.judge(`${phase}_exec${stage === undefined ? '' : ` (${stage})`}`, exit);
    return printed;
  }

  /** Throws the failure that the runner makes of an exit, and reports what the documentation does not foresee. */
  private judge(name: string, exit: DriverExit): void {
    const { buildFailureExitCode = 1, systemFailureExitCode = 2 } = this.config;
    if (exit.notStarted !== undefined) throw new SystemFailure(exit.notStarted);
    if (exit.leftovers) this.reports.violation(`${name} left processes in its group`);
    if (exit.killed) this.reports.violation(`${name} did not end within the graceful time after SIGTERM`);
    if (exit.code === 0) return;
    if (exit.code === buildFailureExitCode) throw this.buildFailure(name);
    if (exit.code === systemFailureExitCode) throw new SystemFailure(`exit status ${systemFailureExitCode}`);
    const how = exit.code === null ? `signal ${exit.signal ?? 'unknown'}` : `exit status ${exit.code}`;
    this.reports.violation(`${name} ended with ${how}, which is neither of the documented exit codes`);
    throw new SystemFailure(`unknown Custom executor executable exit code ${exit.code ?? -1}; ${how}`);
  }

  private buildFailure(name: string): Error {
    const { buildFailureExitCode = 1 } = this.config;
    if (!existsSync(this.exitCodeFile)) return new BuildFailure(`exit status ${buildFailureExitCode}`, 1);
    const text = readFileSync(this.exitCodeFile, 'utf8');
    if (!INTEGER_FILE.test(text)) {
      this.reports.violation(`${name} wrote ${JSON.stringify(text)} to BUILD_EXIT_CODE_FILE, which is not an integer`);
      return new SystemFailure('unknown Custom executor executable exit code');
    }
    return new BuildFailure(`exit status ${text.trim()}`, Number(text));
  }
}
