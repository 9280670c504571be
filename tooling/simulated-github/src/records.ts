/** Records of jobs, runners, runner groups, scale sets and sessions, which refer to each other. */

import type { Timer } from '@nodepool/core';
import type { MessageQueue } from './message-queue.js';
import type { RunnerBehaviour } from './runner-behaviour.js';
import type { Scope } from './scopes.js';

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

export interface Runner {
  readonly id: number;
  readonly name: string;
  readonly scaleSet: ScaleSet;
  /** Name under which the runner asks for its tokens. */
  readonly clientId: string;
  readonly workFolder: string;
  readonly behaviour: RunnerBehaviour;
  readonly registeredAt: string;
  /** Id of the runner's session while it is online. */
  session: string | undefined;
  /** Job that the service has sent to the runner. */
  job: Job | undefined;
  openCalls: number;
  /** Ends the runner's wait for a message. */
  wake: (() => void) | undefined;
  /** True from its deregistration on. */
  isGone: boolean;
  /** Marks the runner as offline, or deletes its registration. */
  timer: Timer | undefined;
}

export interface RunnerGroup {
  readonly id: number;
  readonly name: string;
  /** Path of the scope that has the group. */
  readonly scope: string;
  /** Repositories that may use the group, e.g. `acme/app`. Default: all. */
  readonly repositories?: readonly string[];
}

export interface Label {
  readonly name: string;
  readonly type: string;
}

export interface ScaleSet {
  readonly id: number;
  readonly scope: Scope;
  readonly createdOn: string;
  readonly queue: MessageQueue;
  name: string;
  group: RunnerGroup;
  labels: readonly Label[];
  disableUpdate: boolean;
  session: Session | undefined;
  /** Jobs that the scale set has: acquired, assigned or running. */
  readonly jobs: Set<Job>;
  /** Queued jobs that are offered to the scale set. */
  readonly offered: Set<Job>;
  readonly runners: Set<Runner>;
  /** Assigned jobs without a runner, oldest first. */
  readonly unserved: Job[];
  /** Runners that wait for a job. */
  readonly waiting: Set<Runner>;
}

export interface Session {
  readonly id: string;
  readonly owner: string;
  readonly scaleSet: ScaleSet;
  /** Number of runners that the client can provide; undefined before its first call for messages. */
  capacity: number | undefined;
  /** The capacities that the client has named, without repetitions. */
  readonly capacities: number[];
  openPolls: number;
  expiry: Timer | undefined;
}
