/** A stand-in for GitLab Runner that drives a custom executor, strictly as GitLab documents it. */
import { join } from 'node:path';

export type { RunningDriver } from './driver-process.js';
export type { CustomConfig, Phase, RunnerConfig } from './executor.js';
export type { DriverCall, FailureReason, Job, JobResult, Stage, Variable } from './job.js';
export { GitLabRunner, type OnCall, type RunningJob } from './runner.js';

/** Returns the path of the built program that executes one job, whose file is its argument. */
export function runnerProgram(): string {
  return join(__dirname, '..', 'dist', 'main.js');
}
