/** A GitLab job as the coordinator sends it to the runner, and its result. */

export interface Variable {
  readonly key: string;
  readonly value: string;
  /** A variable of type "File": jobs receive the path of a file with the value. */
  readonly file?: boolean;
}

/** Stages of the job's scripts, in the order in which the runner executes them. */
export const STAGES = [
  'prepare_script',
  'get_sources',
  'clear_worktree',
  'restore_cache',
  'download_artifacts',
  'build_script',
  'after_script',
  'archive_cache',
  'archive_cache_on_failure',
  'upload_artifacts_on_success',
  'upload_artifacts_on_failure',
  'cleanup_file_variables',
] as const;
export type Stage = (typeof STAGES)[number] | `step_${string}`;

export interface Job {
  readonly id: number;
  readonly name?: string;
  readonly projectId?: number;
  readonly projectPath?: string;
  readonly image?: string;
  /** The lines of `before_script` and `script`. */
  readonly script: readonly string[];
  readonly afterScript?: readonly string[];
  /** Steps that GitLab generates, such as `release`, each after the script. */
  readonly steps?: readonly { readonly name: string; readonly script: readonly string[] }[];
  /** Variables of the job, which take precedence over the predefined ones. */
  readonly variables?: readonly Variable[];
  /** Commands of stages that GitLab generates from other keywords, such as `cache` and `artifacts`. */
  readonly generated?: Partial<Record<Stage, readonly string[]>>;
  /** The project's or job's `timeout` (ms). Default one hour. */
  readonly timeoutMs?: number;
  /** Values of `allow_failure:exit_codes`. */
  readonly allowFailureExitCodes?: readonly number[];
}

/** The reasons of GitLab's API that a custom executor can cause. */
export type FailureReason =
  'script_failure' | 'runner_system_failure' | 'job_execution_timeout' | 'job_canceled' | 'runner_interrupted';

/** One call of the driver. */
export interface DriverCall {
  readonly phase: 'config' | 'prepare' | 'run' | 'cleanup';
  /** Stage of a call of `run_exec`. */
  readonly stage?: Stage;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
}

export interface JobResult {
  readonly status: 'success' | 'failed' | 'canceled';
  readonly failureReason?: FailureReason;
  readonly message?: string;
  /** Exit code that GitLab compares with `allow_failure:exit_codes`; undefined for a failure without one. */
  readonly exitCode?: number;
  /** True if `allow_failure:exit_codes` lets the pipeline continue. */
  readonly allowedToFail: boolean;
  /** The job's log. */
  readonly trace: string;
  readonly calls: readonly DriverCall[];
  /** Deviations of the driver from the documentation. */
  readonly violations: readonly string[];
}
