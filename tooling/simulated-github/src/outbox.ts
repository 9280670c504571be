/** Sends messages about jobs to the clients of scale sets, with their planned faults. */

import type { JsonObject } from '@nodepool/core';
import type { MessageFaults } from './faults.js';
import { messageAbout, runnerFields } from './jobs.js';
import type { JobMessage } from './message-queue.js';
import type { GithubState } from './settings.js';
import type { Job, JobResult, Runner, ScaleSet } from './records.js';

export class Outbox {
  constructor(
    private readonly state: GithubState,
    private readonly faults: MessageFaults,
  ) {}

  available(job: Job, set: ScaleSet): void {
    this.send(set, this.offer(job, set));
  }

  assigned(job: Job, set: ScaleSet): void {
    this.send(set, this.message(job, 'JobAssigned'));
  }

  started(job: Job, set: ScaleSet, runner: Runner): void {
    this.send(set, this.message(job, 'JobStarted', { ...runnerFields(runner) }));
  }

  completed(job: Job, set: ScaleSet, result: JobResult, runner: Runner | undefined): void {
    this.send(set, this.message(job, 'JobCompleted', { result, ...runnerFields(runner) }));
  }

  /** Returns the message that offers a job to a scale set. */
  offer(job: Job, { id }: ScaleSet): JobMessage {
    return this.message(job, 'JobAvailable', { acquireJobUrl: `/_apis/runtime/runnerscalesets/${id}/acquirejobs` });
  }

  private message(job: Job, messageType: string, fields: JsonObject = {}): JobMessage {
    return { ...messageAbout(job, messageType, this.state.settings.assignment), ...fields };
  }

  private send(set: ScaleSet, message: JobMessage): void {
    const faults = this.faults.faultsOf({ operation: message.messageType, method: '', path: '' });
    if (faults.some(({ kind }) => kind === 'lost')) return;
    const add = (): void => set.queue.add(message);
    const late = faults.find((fault) => fault.kind === 'late');
    const copies = faults.some(({ kind }) => kind === 'repeated') ? [add, add] : [add];
    for (const copy of copies) {
      if (late === undefined) copy();
      else this.state.clock.schedule(late.ms, copy, { background: true });
    }
  }
}
