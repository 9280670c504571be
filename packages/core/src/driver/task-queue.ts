/** The task manager: a queue of remote calls with a limited rate and concurrency. */

import type { Clock } from '../runtime/clock.js';
import { Latch } from '../runtime/latch.js';
import type { Logger } from '../runtime/logger.js';
import type { ApiCall } from './api.js';
import { ApiClient } from './api-client.js';
import type { Lane } from './api-lane.js';
import { NO_CREDENTIALS } from './api-request.js';
import type { Call } from './call.js';
import { AbortedError, toDriverError } from './errors.js';
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
  /** Maximum duration of one call (ms), from its start, for which a call can block the queue. Default 120,000. */
  readonly callTimeoutMs?: number;
}

export function createTaskManager(options: TaskManagerOptions): TaskManager {
  return new TaskQueue(options);
}

const DEFAULT_CALL_TIMEOUT_MS = 120_000;

/** One lane of an `ApiClient`, which can be drained. */
class TaskQueue implements TaskManager {
  private readonly api: ApiClient;
  private readonly lane: Lane;
  private submitted = 0;
  private stopped = false;
  /** Opens once the queue is stopped and all tasks have ended. */
  private readonly ended = new Latch(false);

  constructor(private readonly options: TaskManagerOptions) {
    const { clock, onApiCall, callsPerSecond, concurrency = 1 } = options;
    const errorOf = toDriverError;
    this.api = new ApiClient({ clock, onApiCall, callsPerSecond, errorOf, credentials: NO_CREDENTIALS });
    this.lane = this.api.lane({ atOnce: concurrency });
  }

  get queueLength(): number {
    return this.lane.queueLength;
  }

  async submit<T>(task: Task<T>, { signal, deadline }: Call): Promise<T> {
    const { service, method, operation } = task;
    const { log, callTimeoutMs = DEFAULT_CALL_TIMEOUT_MS } = this.options;
    const { timeoutMs = callTimeoutMs } = task;
    const { lane } = this;
    const name = `${service} ${method} ${operation}`;
    if (this.stopped) throw new AbortedError(`${name}: the task manager was stopped`, { outcome: 'not-applied' });
    this.submitted += 1;
    try {
      const request = { service, method, operation, name, timeoutMs, lane };
      return await this.api.send(request, { signal, deadline, log }, (attempt) =>
        task.main(attempt.signal, attempt.http),
      );
    } finally {
      this.submitted -= 1;
      this.endIfIdle();
    }
  }

  stop(): void {
    this.stopped = true;
    this.endIfIdle();
  }

  async join(): Promise<void> {
    if (this.submitted > 0) await this.ended.wait();
  }

  private endIfIdle(): void {
    if (this.stopped && this.submitted === 0) this.ended.open();
  }
}
