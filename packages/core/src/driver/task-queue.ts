/** The task manager: a queue of remote calls with a limited rate and concurrency. */

import type { Logger } from '../runtime/logger.js';
import { abortReason, type Clock, type Timer } from '../runtime/clock.js';
import { Latch } from '../runtime/latch.js';
import { TimerQueue } from '../runtime/timer-queue.js';
import type { ApiCall } from './api.js';
import { explained } from './api-client.js';
import { callFailed, callSucceeded } from './applied-calls.js';
import type { Call } from './call.js';
import { AbortedError, isDriverError, TimeoutError, toDriverError, type DriverError } from './errors.js';
import { HttpExchange } from './http-exchange.js';
import { RateLimiter } from './rate-limiter.js';
import type { Task, TaskManager } from './task-manager.js';

export interface TaskManagerOptions {
  readonly clock: Clock;
  /** Positive, may be fractional; `Infinity` disables the rate limit. */
  readonly callsPerSecond: number;
  /** Reports a remote call that has ended. */
  readonly onApiCall: (call: ApiCall) => void;
  readonly log: Logger;
  /** Maximum number of calls in progress. Default 1. */
  readonly concurrency?: number;
  /**
   * Maximum duration of one call in milliseconds, from its start. Limits how long a call can block the queue. Default
   * 120,000.
   */
  readonly callTimeoutMs?: number;
}

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  return new TaskQueue(options);
}

const DEFAULT_CALL_TIMEOUT_MS = 120_000;

/**
 * Time in milliseconds for which an abandoned call that has not ended keeps its slot, since its client may not support
 * concurrent calls.
 */
const ABANDON_AFTER_MS = 10_000;

class TaskQueue implements TaskManager {
  private readonly timers: TimerQueue;
  private readonly limiter: RateLimiter;
  private readonly concurrency: number;
  private readonly callTimeoutMs: number;
  private readonly waiting = new Set<Job>();
  private running = 0;
  private turn: Timer | undefined;
  private stopped = false;
  /** Opens once the queue is stopped and idle. */
  private readonly ended = new Latch(false);

  constructor(private readonly options: TaskManagerOptions) {
    this.timers = new TimerQueue(options.clock);
    this.limiter = new RateLimiter(options.clock, options.callsPerSecond);
    this.concurrency = options.concurrency ?? 1;
    this.callTimeoutMs = options.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS;
  }

  get queueLength(): number {
    return this.waiting.size;
  }

  async submit<T>(task: Task<T>, call: Call): Promise<T> {
    const name = nameOf(task);
    this.admit(name, call);
    return new Promise<T>((resolve, reject) => {
      const { clock } = this.options;
      const timeoutMs = task.timeoutMs ?? this.callTimeoutMs;
      const job = new Job({ clock, timers: this.timers, timeoutMs }, name, call, reject, async (signal) => {
        resolve(await this.timed(task, signal, call.signal));
      });
      job.watch(() => this.drop(job));
      this.waiting.add(job);
      this.pump();
    });
  }

  /** Throws if the queue is stopped, or if the call is aborted or past its deadline. */
  private admit(name: string, { signal, deadline }: Call): void {
    const outcome = 'not-applied';
    if (this.stopped) throw new AbortedError(`${name}: the task manager was stopped`, { outcome });
    if (signal.aborted) throw new AbortedError(`${name} was aborted`, { outcome, cause: abortReason(signal) });
    if (deadline > this.options.clock.monotonic()) return;
    throw new TimeoutError(`${name}: its deadline had passed before it was submitted`, { outcome });
  }

  stop(): void {
    this.stopped = true;
    this.endIfIdle();
  }

  async join(): Promise<void> {
    if (!this.idle()) await this.ended.wait();
  }

  /** Starts every task that may start now, and schedules the rest. */
  private pump(): void {
    for (const job of this.waiting) {
      if (this.running >= this.concurrency || this.turn !== undefined) return;
      const delay = this.limiter.delayMs();
      if (delay > 0) {
        this.turn = this.timers.schedule(this.options.clock.monotonic() + delay, () => {
          this.turn = undefined;
          this.pump();
        });
        return;
      }
      this.waiting.delete(job);
      this.limiter.take();
      this.start(job);
    }
    this.endIfIdle();
  }

  private start(job: Job): void {
    this.running += 1;
    let abandon: Timer | undefined;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      abandon?.cancel();
      this.running -= 1;
      this.pump();
    };
    job.start(release, () => {
      abandon = this.timers.schedule(this.options.clock.monotonic() + ABANDON_AFTER_MS, () => {
        this.options.log.warn('An abandoned remote call is still running', { call: job.name });
        release();
      });
    });
  }

  /** Removes a job that was abandoned before its turn. */
  private drop(job: Job): void {
    this.waiting.delete(job);
    if (this.waiting.size > 0) return;
    this.turn?.cancel();
    this.turn = undefined;
    this.endIfIdle();
  }

  private async timed<T>(task: Task<T>, signal: AbortSignal, ofWork: AbortSignal): Promise<T> {
    const startedAt = this.options.clock.monotonic();
    let status: string | undefined = 'ok';
    const http = new HttpExchange(nameOf(task));
    try {
      const result = await task.main(signal, http);
      this.limiter.settled();
      callSucceeded(task.method, ofWork);
      return result;
    } catch (thrown) {
      const cause = http.refusal ?? thrown;
      const error = isDriverError(cause) ? explained(cause, http) : cause;
      this.limiter.settled(error);
      callFailed(task.method, ofWork, error);
      const { code } = toDriverError(error);
      status = code === 'timeout' || code === 'aborted' ? undefined : code;
      throw error;
    } finally {
      const { service, method, operation } = task;
      const durationMs = this.options.clock.monotonic() - startedAt;
      this.options.onApiCall({ service, method, operation, durationMs, status });
    }
  }

  private idle(): boolean {
    return this.running === 0 && this.waiting.size === 0;
  }

  private endIfIdle(): void {
    if (this.stopped && this.idle()) this.ended.open();
  }
}

function nameOf(task: Task<unknown>): string {
  return `${task.service} ${task.method} ${task.operation}`;
}

/** A submitted task, until its caller has a result and its call has ended. */
class Job {
  private readonly controller = new AbortController();
  private state: 'waiting' | 'running' | 'ended' = 'waiting';
  private timer: Timer | undefined;
  private onAbandoned: () => void = () => undefined;
  private readonly queuedAt: number;

  constructor(
    private readonly env: { readonly clock: Clock; readonly timers: TimerQueue; readonly timeoutMs: number },
    readonly name: string,
    private readonly call: Call,
    private readonly reject: (error: unknown) => void,
    private readonly work: (signal: AbortSignal) => Promise<void>,
  ) {
    this.queuedAt = env.clock.monotonic();
  }

  /** Abandons the job if its call's signal aborts. */
  watch(onAbandoned: () => void): void {
    this.onAbandoned = onAbandoned;
    this.call.signal.addEventListener('abort', this.onAbort, { once: true });
  }

  /**
   * Starts the call, limited to `timeoutMs` or to its deadline, whichever comes first. The wait does not count: in a
   * long queue, every task would otherwise be abandoned before its turn.
   */
  start(onSettled: () => void, onAbandoned: () => void): void {
    const now = this.env.clock.monotonic();
    this.state = 'running';
    this.onAbandoned = onAbandoned;
    this.timer = this.env.timers.schedule(
      Math.min(this.call.deadline + now - this.queuedAt, now + this.env.timeoutMs),
      () => {
        const after = Math.round(this.env.clock.monotonic() - now);
        this.abandon(new TimeoutError(`${this.name} had no answer within ${after} ms`, { outcome: 'unknown' }));
      },
    );
    void this.run(onSettled);
  }

  private async run(onSettled: () => void): Promise<void> {
    try {
      await this.work(this.controller.signal);
      this.end();
    } catch (error) {
      this.end();
      this.reject(error);
    }
    onSettled();
  }

  private readonly onAbort = (): void => {
    const options = { outcome: this.outcome(), cause: abortReason(this.call.signal) };
    this.abandon(new AbortedError(`${this.name} was aborted (${this.state})`, options));
  };

  private abandon(error: DriverError): void {
    if (this.state === 'ended') return;
    this.end();
    this.reject(error);
    this.controller.abort(error);
    this.onAbandoned();
  }

  /** Returns the outcome of an abandoned task: a waiting task was not sent, a running one may have been applied. */
  private outcome(): 'not-applied' | 'unknown' {
    return this.state === 'waiting' ? 'not-applied' : 'unknown';
  }

  private end(): void {
    this.state = 'ended';
    this.timer?.cancel();
    this.call.signal.removeEventListener('abort', this.onAbort);
  }
}
