/** Executes jobs as GitLab Runner does: attempts to prepare, the stages in order, the cleanup, and the job's status. */

import { reasonOf, sleep, systemClock } from '@nodepool/core';
import type { RunningDriver } from './driver-process.js';
import { Executor, type Phase, type RunnerConfig } from './executor.js';
import { BuildFailure, Stopped, SystemFailure } from './failures.js';
import type { DriverCall, FailureReason, Job, JobResult, Stage } from './job.js';
import { within } from './time-limit.js';
import { valueOf } from './variables.js';

const PREPARATION_ATTEMPTS = 3;
const PREPARATION_RETRY_MS = 3_000;
const JOB_TIMEOUT_MS = 3_600_000;
const AFTER_SCRIPT_TIMEOUT_MS = 300_000;
const MAX_ATTEMPTS = 10;

/** Called when a driver's process has started. */
export type OnCall = (phase: Phase, stage: Stage | undefined, running: RunningDriver) => void;

export class GitLabRunner {
  private readonly occupied = new Set<number>();

  constructor(private readonly config: RunnerConfig) {}

  /** Starts a job; jobs may run at the same time. */
  start(job: Job, onCall: OnCall = () => undefined): RunningJob {
    let concurrentId = 0;
    while (this.occupied.has(concurrentId)) concurrentId += 1;
    this.occupied.add(concurrentId);
    const running = new RunningJob(this.config, job, concurrentId, onCall);
    void running.result.finally(() => this.occupied.delete(concurrentId));
    return running;
  }

  async run(job: Job, onCall?: OnCall): Promise<JobResult> {
    return await this.start(job, onCall).result;
  }
}

export class RunningJob {
  readonly result: Promise<JobResult>;
  private readonly context = new AbortController();
  /** Aborts the user's scripts alone, once they are reached. */
  private scripts: AbortController | undefined;
  private readonly calls: DriverCall[] = [];
  private readonly violations: string[] = [];
  private trace = '';

  constructor(
    private readonly config: RunnerConfig,
    private readonly job: Job,
    private readonly concurrentId: number,
    private readonly onCall: OnCall,
  ) {
    this.result = this.execute();
  }

  /** Cancels the job, like the button of the page: its later stages still run if its script has started. */
  cancel(): void {
    (this.scripts ?? this.context).abort(new Stopped('canceled'));
  }

  /** Ends the job as its time limit does, at a moment that the caller chooses. */
  reachTimeLimit(): void {
    this.context.abort(new Stopped('timeout'));
  }

  /** Stops the runner in order, which aborts the job. */
  interrupt(): void {
    this.context.abort(new Stopped('interrupted'));
  }

  private async execute(): Promise<JobResult> {
    const timeoutMs = this.job.timeoutMs ?? JOB_TIMEOUT_MS;
    const timer = systemClock.schedule(timeoutMs, () => this.reachTimeLimit());
    try {
      const executor = await this.prepared(timeoutMs);
      try {
        await this.script(executor);
      } finally {
        await executor.cleanup();
      }
      // The job's context decides if it ended before the job did.
      this.context.signal.throwIfAborted();
      return this.resultOf(undefined);
    } catch (error) {
      return this.resultOf(this.context.signal.aborted ? this.context.signal.reason : error);
    } finally {
      timer.cancel();
    }
  }

  /** Prepares with a new executor in each attempt, and cleans up after each failed one. */
  private async prepared(timeoutMs: number): Promise<Executor> {
    for (let attempt = 1; ; attempt += 1) {
      const executor = new Executor(this.config, this.job, this.concurrentId, timeoutMs, {
        log: (text) => (this.trace += text),
        call: (call) => this.calls.push(call),
        violation: (message) => this.violations.push(message),
        started: this.onCall,
      });
      try {
        await executor.prepare(this.context.signal);
        return executor;
      } catch (error) {
        await executor.cleanup();
        if (error instanceof BuildFailure || this.context.signal.aborted) throw error;
        this.trace += `Preparation failed: ${String(error)}\n`;
        if (attempt === PREPARATION_ATTEMPTS) throw error;
        await sleep(systemClock, this.config.preparationRetryMs ?? PREPARATION_RETRY_MS, this.context.signal);
      }
    }
  }

  private async script(executor: Executor): Promise<void> {
    await this.stage(executor, 'prepare_script');
    let failure = await failureOf(async () => {
      await this.attempts(executor, 'get_sources', 'GET_SOURCES_ATTEMPTS', 'clear_worktree');
      await this.attempts(executor, 'restore_cache', 'RESTORE_CACHE_ATTEMPTS');
      await this.attempts(executor, 'download_artifacts', 'ARTIFACT_DOWNLOAD_ATTEMPTS');
    });
    failure ??= await this.userScripts(executor);
    const archive = failure === undefined ? 'archive_cache' : 'archive_cache_on_failure';
    const upload = failure === undefined ? 'upload_artifacts_on_success' : 'upload_artifacts_on_failure';
    const archived = await failureOf(() => this.stage(executor, archive));
    const uploaded = await failureOf(() => this.stage(executor, upload));
    await failureOf(() => this.stage(executor, 'cleanup_file_variables'));
    const first = failure ?? archived ?? uploaded;
    if (first !== undefined) throw first;
  }

  /** Executes the steps of the user until the first failure, and always `after_script`. */
  private async userScripts(executor: Executor): Promise<Error | undefined> {
    const scripts = new AbortController();
    this.scripts = scripts;
    const signal = AbortSignal.any([scripts.signal, this.context.signal]);
    const steps: Stage[] = ['build_script', ...(this.job.steps ?? []).map(({ name }): Stage => `step_${name}`)];
    let failure = await failureOf(async () => {
      for (const step of steps) await this.stage(executor, step, signal);
    });
    if (scripts.signal.aborted) failure = scripts.signal.reason as Error;
    executor.status = statusOf(failure);
    const limited = within(this.context.signal, AFTER_SCRIPT_TIMEOUT_MS);
    const ignored = await failureOf(() => this.stage(executor, 'after_script', limited));
    if (ignored !== undefined)
      this.trace += `after_script failed, but job will continue unaffected: ${String(ignored)}\n`;
    return failure;
  }

  private async attempts(executor: Executor, stage: Stage, key: string, beforeSecond?: Stage): Promise<void> {
    const wanted = Number(valueOf(this.job.variables ?? [], key) ?? 1);
    const attempts = Math.max(1, Math.min(MAX_ATTEMPTS, Number.isInteger(wanted) ? wanted : 1));
    for (let attempt = 1; ; attempt += 1) {
      if (attempt === 2 && beforeSecond !== undefined) await this.stage(executor, beforeSecond);
      const failure = await failureOf(() => this.stage(executor, stage));
      if (failure === undefined) return;
      if (attempt >= attempts || this.context.signal.aborted) throw failure;
    }
  }

  private async stage(executor: Executor, stage: Stage, signal: AbortSignal = this.context.signal): Promise<void> {
    signal.throwIfAborted();
    await executor.run(stage, signal);
  }

  private resultOf(error: unknown): JobResult {
    const common = { trace: this.trace, calls: this.calls, violations: this.violations, allowedToFail: false };
    if (error === undefined) return { ...common, status: 'success' };
    const message = reasonOf(error);
    if (error instanceof Stopped) {
      const reasons = { canceled: 'job_canceled', timeout: 'job_execution_timeout', interrupted: 'runner_interrupted' };
      const failureReason = reasons[error.why] as FailureReason;
      return { ...common, status: error.why === 'canceled' ? 'canceled' : 'failed', failureReason, message };
    }
    if (error instanceof BuildFailure) {
      const { exitCode } = error;
      const allowedToFail = this.job.allowFailureExitCodes?.includes(exitCode) ?? false;
      return { ...common, status: 'failed', failureReason: 'script_failure', message, exitCode, allowedToFail };
    }
    if (!(error instanceof SystemFailure)) this.trace += `Job failed (system failure): ${message}\n`;
    return { ...common, status: 'failed', failureReason: 'runner_system_failure', message };
  }
}

/** Returns the value of `CI_JOB_STATUS` for the stages after the user's scripts. */
function statusOf(failure: Error | undefined): string {
  if (failure === undefined) return 'success';
  if (!(failure instanceof Stopped)) return 'failed';
  return failure.why === 'timeout' ? 'timedout' : 'canceled';
}

async function failureOf(work: () => Promise<void>): Promise<Error | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
