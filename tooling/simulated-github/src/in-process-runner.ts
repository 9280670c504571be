/**
 * A runner inside this process, on the simulation's clock: for tests with thousands of jobs, or with a virtual clock.
 * It behaves as the stand-in in `runner/run.cjs`, without commands and hooks.
 */

import { sleep } from '@nodepool/core';
import type { Dispatcher } from './dispatcher.js';
import { registrationIn } from './jit-config.js';
import type { Job, Runner } from './records.js';
import type { RunnerService } from './runner-service.js';
import type { Runners } from './runners.js';
import type { GithubState } from './settings.js';

/** Time between renewals of a job (ms). */
const RENEW_MS = 60_000;

/** How a runner ended: by itself, killed, or because it is not registered (any more). */
export type RunnerEnd = 'exited' | 'killed' | 'not-registered';

export interface InProcessRunner {
  readonly ended: Promise<RunnerEnd>;
  /** Ends the runner at once, without a word to the service. Idempotent. */
  kill(): void;
}

export interface InProcessParts {
  readonly state: GithubState;
  readonly runners: Runners;
  readonly service: RunnerService;
  readonly dispatcher: Dispatcher;
}

/** Starts the runner of a just-in-time configuration. Throws if the text is not one. */
export function startInProcessRunner(parts: InProcessParts, encodedJitConfig: string): InProcessRunner {
  const { clientId } = registrationIn(encodedJitConfig);
  const life = new AbortController();
  const runner = parts.runners.withClientId(clientId);
  const run = async (): Promise<RunnerEnd> => {
    if (runner === undefined) return 'not-registered';
    try {
      return await new Life(parts, runner, life.signal).run();
    } catch (error) {
      if (life.signal.aborted) return 'killed';
      if (runner.isGone) return 'not-registered';
      throw error;
    }
  };
  return { ended: run(), kill: () => life.abort(new Error('the runner was killed')) };
}

class Life {
  constructor(
    private readonly parts: InProcessParts,
    private readonly runner: Runner,
    private readonly killed: AbortSignal,
  ) {}

  async run(): Promise<RunnerEnd> {
    const { service } = this.parts;
    const { behaviour } = this.runner;
    if (behaviour === 'dies-at-once') return 'killed';
    if (behaviour === 'never-connects') return this.hang();
    const session = service.connect(this.runner);
    if (behaviour === 'hangs-online') return this.hang();
    if (behaviour === 'ends-without-job') {
      service.disconnect(this.runner);
      return 'exited';
    }
    const job = await this.nextJob(session);
    return job.request.behaviour === 'dies-in-job' ? 'killed' : this.work(job, session);
  }

  private async nextJob(session: string): Promise<Job> {
    const { service, dispatcher } = this.parts;
    for (;;) {
      const message = await service.message(this.runner, session, false, this.killed);
      this.killed.throwIfAborted();
      if (message?.kind === 'job' && dispatcher.start(this.runner, message.job)) return message.job;
    }
  }

  private async work(job: Job, session: string): Promise<RunnerEnd> {
    const { durationMs = 0, conclusion = 'succeeded', behaviour } = job.request;
    if (behaviour === 'hangs-in-job') return this.hang();
    const over = new AbortController();
    const stop = AbortSignal.any([this.killed, over.signal]);
    const renewals = this.renew(job, stop);
    const cancelled = this.cancellation(session, stop);
    const done = behaviour === 'never-ends-job' ? this.hang(stop) : sleep(this.parts.state.clock, durationMs, stop);
    try {
      const result = await Promise.race([done.then(() => conclusion), cancelled]);
      // The service has ended the job if it is not running any more.
      if (job.state === 'running' && this.runner.job === job) this.parts.dispatcher.finish(job, result);
      return 'exited';
    } finally {
      over.abort(new Error('the job is over'));
      await Promise.allSettled([renewals, cancelled, done]);
    }
  }

  private async renew(job: Job, stop: AbortSignal): Promise<never> {
    for (;;) {
      await sleep(this.parts.state.clock, RENEW_MS, stop);
      this.parts.service.expectCall(this.runner);
      this.parts.dispatcher.renew(job);
    }
  }

  private async cancellation(session: string, stop: AbortSignal): Promise<'canceled'> {
    for (;;) {
      const message = await this.parts.service.message(this.runner, session, true, stop);
      stop.throwIfAborted();
      if (message?.kind === 'cancel') return 'canceled';
    }
  }

  /** Does nothing until the runner is killed. */
  private hang(signal = this.killed): Promise<never> {
    return new Promise((_resolve, reject) => {
      const end = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('ended'));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
  }
}
