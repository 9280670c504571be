/** A runner of the scale set that this bridge serves: its request, its node, its process and its job. */

import type { JobResult, Lease } from '@nodepool/requestor';
import type { RunnerData } from '@nodepool/store/github';
import type { RunnerProcess } from './runner-process.js';

/** Reasons why a runner ends; they are values of a metric. */
export type EndReason =
  | 'job-done'
  | 'not-needed'
  | 'request-failed'
  | 'request-removed'
  | 'node-unusable'
  | 'node-lost'
  | 'lease-lost'
  | 'unreachable'
  | 'never-connected'
  | 'takes-no-job'
  | 'ended-without-job'
  | 'killed'
  | 'left'
  | 'agent-gone';

export type RunnerState = 'requested' | 'starting' | 'online' | 'busy' | 'ending';

/** Reasons for which GitHub decides: it refuses to delete a runner whose job runs. */
export const ASKED: ReadonlySet<EndReason> = new Set(['not-needed', 'unreachable', 'takes-no-job']);

/** Results of jobs, as GitHub names them, that say something about the image. */
const RESULTS: ReadonlyMap<string, JobResult> = new Map([
  ['succeeded', 'success'],
  ['failed', 'failure'],
]);

/** Number of random hexadecimal digits in the names of runners. */
const DIGITS = 16;

export class Runner {
  requestId: string | undefined;
  lease: Lease | undefined;
  process: RunnerProcess | undefined;
  /** Why the request waits or failed, for people. */
  waitsFor: string | undefined;
  /** True while an ssh session waits for the end of the process. */
  isAttached = false;
  /** True if the process certainly does not run, or was never started. */
  isStopped = true;
  isOnline = false;
  /** True from the start of a job on. */
  isBusy = false;
  /** True once GitHub has reported the end of the job. */
  isDone = false;
  /** The result of the job as GitHub reports it, with which launchers judge images. Empty until then. */
  jobResult = '';
  /** Set once the runner is to end. */
  ending: { readonly reason: EndReason; readonly detail: string } | undefined;
  /** Ends the attachment to the process. */
  readonly detach = new AbortController();
  /** Exit status of the process, once it has ended by itself. */
  exitStatus: number | undefined;
  /** `Clock.monotonic` milliseconds. */
  leasedAt: number | undefined;
  registeredAt: number | undefined;
  onlineAt: number | undefined;
  doneAt: number | undefined;
  /** Set when the process has ended after a job, before GitHub has reported the end of the job. */
  awaitsResultSince: number | undefined;
  unreachableSince: number | undefined;

  constructor(
    public data: RunnerData,
    readonly createdAt: number,
  ) {}

  get name(): string {
    return this.data.runner;
  }

  /** True if the runner serves a job or can serve one, or if GitHub may still count a job that it had. */
  get counts(): boolean {
    if (this.isDone) return false;
    return this.ending === undefined || (this.data.started && !ASKED.has(this.ending.reason));
  }

  get state(): RunnerState {
    if (this.ending !== undefined) return 'ending';
    if (this.isBusy) return 'busy';
    if (this.isOnline) return 'online';
    return this.lease === undefined ? 'requested' : 'starting';
  }

  /**
   * The result of the job for its image; undefined if it says nothing about the image, as that of a cancelled job or of
   * one whose runner has failed itself. GitHub reports both kinds of failures alike.
   */
  get result(): JobResult | undefined {
    const isProper = this.ending?.reason === 'job-done' && this.exitStatus === 0;
    return isProper ? RESULTS.get(this.jobResult) : undefined;
  }

  /** Marks the runner as ending; the first reason counts. */
  end(reason: EndReason, detail = ''): void {
    this.ending ??= { reason, detail };
  }
}

/** Returns a name for a runner of the scale set. `hex` is a random uuid. */
export function newRunnerName(scaleSet: string, hex: string): string {
  return `${scaleSet}-${hex.slice(0, DIGITS)}`;
}

/** Returns true if a name has the form of the names of this scale set. */
export function isRunnerName(name: string, scaleSet: string): boolean {
  const rest = name.startsWith(`${scaleSet}-`) ? name.slice(scaleSet.length + 1) : '';
  return rest.length === DIGITS && /^[0-9a-f]+$/.test(rest);
}
