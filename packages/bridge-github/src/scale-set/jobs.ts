/**
 * The jobs of a scale set, as its messages tell them. Messages can be lost, repeated or late, so jobs are only for
 * people, for metrics, and for the data of requests; the number of runners follows the statistics.
 */

import type { Clock } from '@nodepool/core';
import type { GithubJob, KnownJob } from '@nodepool/store/github';
import type { JobMessage, JobMessageKind } from '../github/documents.js';

/** Jobs that are kept; ended ones are dropped first, then the oldest. */
const MAX_JOBS = 2000;
/** Ended jobs that are shown. */
const MAX_ENDED = 50;
/** Jobs that are shown. */
const MAX_SHOWN = 500;

const ORDER: Readonly<Record<JobMessageKind, number>> = { available: 0, assigned: 1, started: 2, completed: 3 };
const STATES = { available: 'offered', assigned: 'assigned', started: 'running', completed: 'completed' } as const;

export interface TrackedJob {
  readonly job: GithubJob;
  kind: JobMessageKind;
  /** Milliseconds since the epoch. */
  since: number;
  queuedAt: number | undefined;
  /** Time until the assignment, by GitHub's clock (ms). */
  queuedMs: number | undefined;
  assignedAt: number | undefined;
  /** `Clock.monotonic` milliseconds at which the assignment was noticed. */
  noticedAt: number | undefined;
  startedAt: number | undefined;
  runner: string | undefined;
  result: string | undefined;
  /** Name of the runner whose request the job caused. */
  requestedFor: string | undefined;
}

export class JobBook {
  private readonly jobs = new Map<string, TrackedJob>();

  constructor(private readonly clock: Clock) {}

  /** Notes a message. Returns the job if the message is news, i.e. neither repeated nor overtaken. */
  note(message: JobMessage): TrackedJob | undefined {
    const { kind, jobId, repository, workflow, runId, name } = message;
    if (jobId === '') return undefined;
    const known = this.jobs.get(jobId);
    // A job that no runner has started in time is assigned again.
    if (known !== undefined && ORDER[kind] <= ORDER[known.kind] && !isReassigned(known, message)) return undefined;
    const tracked: TrackedJob = known ?? {
      job: { id: jobId, repository, workflow, run: runId, name },
      ...{
        kind,
        since: 0,
        queuedAt: undefined,
        queuedMs: undefined,
        assignedAt: undefined,
        noticedAt: undefined,
        startedAt: undefined,
      },
      ...{ runner: undefined, result: undefined, requestedFor: undefined },
    };
    tracked.kind = kind;
    tracked.since = this.clock.now();
    tracked.queuedAt = message.queuedAt ?? tracked.queuedAt;
    tracked.assignedAt = message.assignedAt ?? tracked.assignedAt;
    const { queuedAt, assignedAt } = tracked;
    if (queuedAt !== undefined && assignedAt !== undefined) tracked.queuedMs = Math.max(0, assignedAt - queuedAt);
    if (kind === 'assigned') tracked.noticedAt = this.clock.monotonic();
    if (kind === 'started') tracked.startedAt = this.clock.monotonic();
    if (message.runner !== '') tracked.runner = message.runner;
    if (message.result !== '') tracked.result = message.result;
    this.jobs.delete(jobId);
    this.jobs.set(jobId, tracked);
    this.limit();
    return tracked;
  }

  get(id: string | undefined): TrackedJob | undefined {
    return id === undefined ? undefined : this.jobs.get(id);
  }

  /** Returns the oldest assigned job for which no runner is requested, and notes the runner. */
  requestFor(runner: string): GithubJob | null {
    for (const tracked of this.jobs.values()) {
      if (tracked.kind !== 'assigned' || tracked.requestedFor !== undefined) continue;
      tracked.requestedFor = runner;
      return tracked.job;
    }
    return null;
  }

  /** Returns the time (ms) for which the oldest assigned job has waited for its start; 0 if there is none. */
  oldestWaitMs(): number {
    const waiting = [...this.jobs.values()].filter(({ kind }) => kind === 'assigned');
    const now = this.clock.monotonic();
    return Math.max(0, ...waiting.map(({ noticedAt = now }) => now - noticedAt));
  }

  /** Returns the jobs for people: those in progress, and the last ones that ended. */
  shown(): readonly KnownJob[] {
    const all = [...this.jobs.values()];
    const ended = all.filter(({ kind }) => kind === 'completed').slice(-MAX_ENDED);
    const open = all.filter(({ kind }) => kind !== 'completed').slice(0, MAX_SHOWN - ended.length);
    return [...open, ...ended].map(({ job, kind, since, queuedAt, runner, result, requestedFor }) => ({
      ...job,
      state: STATES[kind],
      since: since / 1000,
      queued: queuedAt === undefined ? null : queuedAt / 1000,
      runner: runner ?? requestedFor ?? null,
      result: result ?? null,
    }));
  }

  private limit(): void {
    if (this.jobs.size <= MAX_JOBS) return;
    const ids = [...this.jobs.keys()];
    const ended = ids.find((id) => this.jobs.get(id)?.kind === 'completed');
    this.jobs.delete(ended ?? ids[0] ?? '');
  }
}

function isReassigned(known: TrackedJob, { kind, assignedAt }: JobMessage): boolean {
  return kind === 'assigned' && (assignedAt ?? 0) > (known.assignedAt ?? Infinity);
}
