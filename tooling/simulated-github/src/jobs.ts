/** Jobs of workflows and the messages about them. */

import type { Timer } from '@nodepool/core';
import type { JobMessage } from './message-queue.js';
import type { RunnerBehaviour } from './runner-behaviour.js';
import type { Runner } from './runners.js';
import type { ScaleSet } from './scale-sets.js';

export type JobResult = 'succeeded' | 'failed' | 'canceled';

/** A job to queue. */
export interface JobRequest {
  /** e.g. `acme/app`. */
  readonly repository: string;
  /** The labels of `runs-on`. A scale set must have all of them. */
  readonly labels: readonly string[];
  /** File name of the workflow. Default `ci.yml`. */
  readonly workflow?: string;
  /** Default `build`. */
  readonly displayName?: string;
  /** Default `push`. */
  readonly eventName?: string;
  /** Time for which the stand-in runs the job (ms). Default 0. */
  readonly durationMs?: number;
  /** Default `succeeded`. */
  readonly conclusion?: 'succeeded' | 'failed';
  /** A command that the stand-in runs with the shell; a failure fails the job. Default: none. */
  readonly run?: string;
  /** Default `normal`. */
  readonly behaviour?: RunnerBehaviour;
}

/**
 * `queued`: no scale set has the job. `delayed`: it waits for its next assignment. `acquired`, `assigned`: a scale set
 * has it. `running`: a runner has it.
 */
export type JobState = 'queued' | 'delayed' | 'acquired' | 'assigned' | 'running' | 'completed';

export interface Job {
  readonly number: number;
  readonly jobId: string;
  readonly planId: string;
  readonly runId: number;
  readonly owner: string;
  readonly repository: string;
  readonly request: JobRequest;
  readonly queueTime: string;
  state: JobState;
  scaleSet: ScaleSet | undefined;
  runner: Runner | undefined;
  /** Scale sets to which the job is offered. */
  readonly offers: Set<ScaleSet>;
  /** Names of the runners that have started the job: at most one, unless the service failed. */
  readonly startedBy: string[];
  /** Number of assignments to scale sets. */
  assignments: number;
  scaleSetAssignTime: string | undefined;
  runnerAssignTime: string | undefined;
  finishTime: string | undefined;
  result: JobResult | undefined;
  /** True if the runner must end the job. */
  isCancelled: boolean;
  /** Ends the current state. */
  timer: Timer | undefined;
  /** Cancels the job if no runner has started it in time. */
  queueTimer: Timer | undefined;
}

/** Returns the request id that messages of the job contain; github.com sends 0 for jobs that it assigns itself. */
export function requestIdOf(job: Job, assignment: 'direct' | 'acquire'): number {
  return assignment === 'direct' ? 0 : job.number;
}

/**
 * Returns a message with the fields that the job has so far. github.com has no `queueTime` in `JobAssigned`: see the
 * README for the source.
 */
export function messageAbout(job: Job, messageType: string, assignment: 'direct' | 'acquire'): JobMessage {
  const { request, scaleSetAssignTime, runnerAssignTime, finishTime } = job;
  const { workflow = 'ci.yml', displayName = 'build', eventName = 'push' } = request;
  const hasQueueTime = assignment === 'acquire' || messageType !== 'JobAssigned';
  return {
    messageType,
    runnerRequestId: requestIdOf(job, assignment),
    repositoryName: job.repository,
    ownerName: job.owner,
    jobId: job.jobId,
    jobWorkflowRef: `${job.owner}/${job.repository}/.github/workflows/${workflow}@refs/heads/main`,
    jobDisplayName: displayName,
    workflowRunId: job.runId,
    eventName,
    requestLabels: request.labels,
    ...(hasQueueTime ? { queueTime: job.queueTime } : {}),
    ...(scaleSetAssignTime === undefined ? {} : { scaleSetAssignTime }),
    ...(runnerAssignTime === undefined ? {} : { runnerAssignTime }),
    ...(finishTime === undefined ? {} : { finishTime }),
  };
}

/** Returns the fields of messages that name the runner: id 0 and an empty name if there is none. */
export function runnerFields(runner: Runner | undefined): { readonly runnerId: number; readonly runnerName: string } {
  return { runnerId: runner?.id ?? 0, runnerName: runner?.name ?? '' };
}
