/** Applies the messages about jobs to the jobs and runners of a scale set, and measures the phases of jobs. */

import type { Clock } from '@nodepool/core';
import type { JobMessage } from '../github/documents.js';
import type { Runner } from '../runners/runner.js';
import type { JobBook } from './jobs.js';
import type { Phases } from './phases.js';

export interface JobObserverOptions {
  readonly clock: Clock;
  readonly jobs: JobBook;
  readonly phases: Phases;
  readonly runner: (name: string) => Runner | undefined;
  readonly enqueue: (runner: Runner) => void;
  /** Called with the name of a runner whose job has ended. */
  readonly onCompleted: (runner: string) => void;
  /** Called when a message was news. */
  readonly onChange: () => void;
}

export class JobObserver {
  constructor(private readonly options: JobObserverOptions) {}

  note(message: JobMessage): void {
    const { clock, jobs, phases, enqueue, onCompleted, onChange } = this.options;
    const tracked = jobs.note(message);
    const runner = this.options.runner(message.runner);
    if (message.kind === 'completed') onCompleted(message.runner);
    if (message.kind === 'started' && runner !== undefined && !runner.isBusy) {
      runner.isBusy = true;
      if (tracked !== undefined) runner.data = { ...runner.data, job: tracked.job };
      if (runner.onlineAt !== undefined) phases.observe('idle', runner.data.job, clock.monotonic() - runner.onlineAt);
    }
    if (message.kind === 'completed' && runner !== undefined && !runner.isDone) {
      runner.isDone = true;
      runner.jobResult = message.result;
      runner.doneAt = clock.monotonic();
      enqueue(runner);
    }
    if (tracked === undefined) return;
    const { job, noticedAt, startedAt, kind, queuedMs } = tracked;
    if (kind === 'started') {
      if (queuedMs !== undefined) phases.observe('queued', job, queuedMs);
      if (noticedAt !== undefined) phases.observe('waiting', job, clock.monotonic() - noticedAt);
    } else if (kind === 'completed' && startedAt !== undefined) {
      phases.observe('running', job, clock.monotonic() - startedAt);
    }
    onChange();
  }

  /** Measures the time from GitHub's queue to a runner that is online, for the job that caused the runner. */
  online({ data, onlineAt }: Runner): void {
    const { jobs, phases } = this.options;
    const tracked = jobs.get(data.job?.id);
    if (tracked?.noticedAt === undefined || onlineAt === undefined) return;
    phases.observe('online', data.job, (tracked.queuedMs ?? 0) + onlineAt - tracked.noticedAt);
  }
}
