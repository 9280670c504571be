/** Assigns queued jobs to scale sets and to their runners, and reports it in messages. */

import type { EventLog } from './event-log.js';
import type { JobMessage } from './message-queue.js';
import type { Outbox } from './outbox.js';
import type { Runners } from './runners.js';
import type { ScaleSets } from './scale-sets.js';
import type { Scopes } from './scopes.js';
import { FIRST_RUN_ID, newUuid, timestamp, type GithubState } from './settings.js';
import { statisticsOf, type Statistics } from './statistics.js';
import type { Job, JobRequest, JobResult, Runner, ScaleSet } from './records.js';

/** Maximum number of times that a job is taken from a scale set because no runner took it. */
const MAX_REQUEUES = 3;

export interface DispatcherParts {
  readonly state: GithubState;
  readonly scopes: Scopes;
  readonly scaleSets: ScaleSets;
  readonly runners: Runners;
  readonly outbox: Outbox;
  readonly log: EventLog;
}

export class Dispatcher {
  private readonly jobs = new Map<number, Job>();
  /** Jobs that no scale set has, oldest first. */
  private readonly queued = new Set<Job>();

  constructor(private readonly parts: DispatcherParts) {}

  all(): readonly Job[] {
    return [...this.jobs.values()];
  }

  get(number: number): Job | undefined {
    return this.jobs.get(number);
  }

  /** Queues a job. Throws if its repository does not exist. */
  queue(request: JobRequest): Job {
    const { state, scopes, log } = this.parts;
    const scope = scopes.at(request.repository);
    if (scope?.kind !== 'repository') throw new Error(`there is no repository ${request.repository}`);
    const number = this.jobs.size + 1;
    const job: Job = {
      ...{ number, jobId: newUuid(state), planId: newUuid(state), runId: FIRST_RUN_ID + number - 1, request },
      ...{ owner: scope.organization, repository: scope.repository, queueTime: timestamp(state), state: 'queued' },
      ...{ scaleSet: undefined, runner: undefined, offers: new Set(), startedBy: [], assignments: 0 },
      ...{ scaleSetAssignTime: undefined, runnerAssignTime: undefined, finishTime: undefined, result: undefined },
      ...{ isCancelled: false, timer: undefined, queueTimer: undefined },
    };
    this.jobs.set(number, job);
    this.queued.add(job);
    const { queueLimitMs } = state.settings;
    job.queueTimer = state.clock.schedule(queueLimitMs, () => this.cancel(job), { background: true });
    log.add(`Job ${number} of ${request.repository} is queued for ${request.labels.join(', ')}`);
    this.dispatch();
    return job;
  }

  /** Assigns or offers queued jobs to scale sets with free capacity, oldest first. */
  dispatch(): void {
    const { scaleSets, state } = this.parts;
    const { assignment } = state.settings;
    const sets = scaleSets.all();
    for (const job of this.queued) {
      const free = sets.filter((set) => roomOf(set) > 0);
      if (free.length === 0) return;
      const able = free.filter((set) => !set.offered.has(job) && this.matches(job, set));
      for (const set of assignment === 'acquire' ? able : this.oneOf(able)) {
        if (assignment === 'direct') this.assign(job, set);
        else this.offer(job, set);
      }
    }
  }

  /** Gives a scale set those of the offered jobs that are still free and within its capacity. */
  acquire(set: ScaleSet, numbers: readonly number[]): readonly number[] {
    return numbers.filter((number) => {
      const job = this.jobs.get(number);
      if (job === undefined || !set.offered.has(job) || set.jobs.size >= (set.session?.capacity ?? 0)) return false;
      this.give(job, set, 'acquired');
      const { clock, settings } = this.parts.state;
      if (settings.assignMs === 0) this.assign(job, set);
      else job.timer = clock.schedule(settings.assignMs, () => this.assign(job, set), { background: true });
      return true;
    });
  }

  /** Gives waiting runners of the scale set its jobs without a runner. */
  serve(set: ScaleSet): void {
    for (const runner of set.waiting) {
      const job = set.unserved.shift();
      if (job === undefined) return;
      set.waiting.delete(runner);
      runner.job = job;
      job.runner = runner;
      job.runnerAssignTime = timestamp(this.parts.state);
      runner.wake?.();
    }
  }

  /** Starts the job that the service has sent to the runner. Returns false if the runner does not have it any more. */
  start(runner: Runner, job: Job): boolean {
    if (runner.job !== job || job.state !== 'assigned') return false;
    job.timer?.cancel();
    job.queueTimer?.cancel();
    job.state = 'running';
    job.startedBy.push(runner.name);
    this.renew(job);
    this.parts.outbox.started(job, runner.scaleSet, runner);
    this.parts.log.add(`Job ${job.number} runs on ${runner.name}`);
    return true;
  }

  /** Extends the time until a running job fails because its runner is silent. */
  renew(job: Job): void {
    const { clock, settings } = this.parts.state;
    if (job.isCancelled) return;
    job.timer?.cancel();
    job.timer = clock.schedule(settings.jobLockMs, () => this.finish(job, 'failed'), { background: true });
  }

  /** Ends a job. A runner that has started it is deregistered, since it serves one job only. */
  finish(job: Job, result: JobResult): void {
    const { runner, scaleSet, state } = job;
    job.timer?.cancel();
    job.queueTimer?.cancel();
    this.withdraw(job);
    scaleSet?.jobs.delete(job);
    job.state = 'completed';
    job.result = result;
    job.finishTime = timestamp(this.parts.state);
    this.parts.log.add(`Job ${job.number} ended: ${result}`);
    if (runner !== undefined) runner.job = undefined;
    if (runner !== undefined && state === 'running') this.deregister(runner);
    if (scaleSet !== undefined) this.parts.outbox.completed(job, scaleSet, result, runner);
    this.dispatch();
  }

  /** Cancels a job as a user does: a runner that has started it must end it. */
  cancel(job: Job): void {
    if (job.state === 'completed' || job.isCancelled) return;
    job.isCancelled = true;
    this.parts.log.add(`Job ${job.number} is cancelled`);
    if (job.state === 'running') {
      const { clock, settings } = this.parts.state;
      job.timer?.cancel();
      job.timer = clock.schedule(settings.cancelGraceMs, () => this.finish(job, 'canceled'), { background: true });
      job.runner?.wake?.();
      return;
    }
    if (job.scaleSet !== undefined) remove(job.scaleSet.unserved, job);
    const { runner } = job;
    job.runner = undefined;
    if (runner !== undefined) runner.job = undefined;
    this.finish(job, 'canceled');
  }

  /** Deletes a runner's registration; its job fails if it runs, and waits for another runner if it does not. */
  deregister(runner: Runner): void {
    if (runner.isGone) return;
    this.parts.runners.delete(runner);
    runner.wake?.();
    this.parts.log.add(`Runner ${runner.name} is deregistered`);
    if (runner.job?.state === 'running') this.finish(runner.job, 'failed');
    else this.release(runner);
  }

  /** Takes a job from a runner that has not started it. */
  release(runner: Runner): void {
    const { job, scaleSet } = runner;
    if (job === undefined || job.state === 'running') return;
    runner.job = undefined;
    job.runner = undefined;
    job.runnerAssignTime = undefined;
    scaleSet.unserved.unshift(job);
    this.serve(scaleSet);
  }

  /** Deletes a scale set: its runners are deregistered, and its waiting jobs are queued again. */
  deleteScaleSet(set: ScaleSet): void {
    this.parts.scaleSets.delete(set);
    for (const runner of set.runners) this.deregister(runner);
    for (const job of set.jobs) this.requeue(job);
    this.dispatch();
  }

  statisticsOf(set: ScaleSet): Statistics {
    const available = [...this.queued].filter((job) => this.matches(job, set));
    return statisticsOf(set, available.length);
  }

  /** Deletes the registration of a runner that is offline for long. */
  expectConnection(runner: Runner): void {
    const { clock, settings } = this.parts.state;
    const expire = (): void => this.deregister(runner);
    runner.timer?.cancel();
    runner.timer = clock.schedule(settings.offlineRunnerMs, expire, { background: true });
  }

  /** Returns the jobs that the scale set can acquire now. */
  offersOf(set: ScaleSet): readonly JobMessage[] {
    return [...set.offered].map((job) => this.parts.outbox.offer(job, set));
  }

  private offer(job: Job, set: ScaleSet): void {
    job.offers.add(set);
    set.offered.add(job);
    this.parts.outbox.available(job, set);
    this.parts.log.add(`Job ${job.number} is offered to scale set ${set.name}`);
  }

  private assign(job: Job, set: ScaleSet): void {
    const { state, log, outbox } = this.parts;
    this.give(job, set, 'assigned');
    job.assignments += 1;
    job.scaleSetAssignTime = timestamp(state);
    set.unserved.push(job);
    job.timer?.cancel();
    job.timer = undefined;
    if (job.assignments <= MAX_REQUEUES) {
      job.timer = state.clock.schedule(state.settings.pickupMs, () => this.takeBack(job), { background: true });
    }
    outbox.assigned(job, set);
    log.add(`Job ${job.number} is assigned to scale set ${set.name}`);
    this.serve(set);
  }

  /** Takes a job that no runner started from its scale set, and queues it again after a pause. */
  private takeBack(job: Job): void {
    const { clock, settings } = this.parts.state;
    job.finishTime = timestamp(this.parts.state);
    if (job.scaleSet !== undefined) this.parts.outbox.completed(job, job.scaleSet, 'canceled', undefined);
    this.requeue(job);
    this.queued.delete(job);
    job.state = 'delayed';
    job.finishTime = undefined;
    const again = (): void => {
      job.state = 'queued';
      this.queued.add(job);
      this.dispatch();
    };
    job.timer = clock.schedule(settings.requeueDelayMs * job.assignments, again, { background: true });
    this.parts.log.add(`Job ${job.number} waits for its next assignment, because no runner started it in time`);
    this.dispatch();
  }

  private requeue(job: Job): void {
    job.timer?.cancel();
    job.scaleSet?.jobs.delete(job);
    if (job.scaleSet !== undefined) remove(job.scaleSet.unserved, job);
    if (job.runner !== undefined) job.runner.job = undefined;
    job.state = 'queued';
    job.scaleSet = undefined;
    job.runner = undefined;
    job.scaleSetAssignTime = undefined;
    job.runnerAssignTime = undefined;
    this.queued.add(job);
  }

  private give(job: Job, set: ScaleSet, state: 'acquired' | 'assigned'): void {
    this.withdraw(job);
    job.state = state;
    job.scaleSet = set;
    set.jobs.add(job);
  }

  /** Removes a job from the queue, and its offers. */
  private withdraw(job: Job): void {
    this.queued.delete(job);
    for (const set of job.offers) set.offered.delete(job);
    job.offers.clear();
  }

  /** GitHub does not document which of several able scale sets it chooses. */
  private oneOf<T>(items: readonly T[]): readonly T[] {
    const chosen = items[Math.floor(this.parts.state.random.next() * items.length)];
    return chosen === undefined ? [] : [chosen];
  }

  /** Returns true if the scale set has all labels of the job and may serve its repository. */
  private matches({ owner, repository, request }: Job, { scope, labels, group }: ScaleSet): boolean {
    const has = new Set(labels.map(({ name }) => name.toLowerCase()));
    if (!request.labels.every((label) => has.has(label.toLowerCase()))) return false;
    if (!this.parts.scopes.serves(scope, owner, repository)) return false;
    return group.repositories?.includes(`${owner}/${repository}`) ?? true;
  }
}

/** Returns the number of jobs that can be assigned or offered to the scale set. */
function roomOf({ session, jobs, offered }: ScaleSet): number {
  return (session?.capacity ?? 0) - jobs.size - offered.size;
}

function remove<T>(items: T[], item: T): void {
  const index = items.indexOf(item);
  if (index >= 0) items.splice(index, 1);
}
