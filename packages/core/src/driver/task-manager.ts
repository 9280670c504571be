/** Remote calls as tasks that run in order, at the configured rate. The implementation is in `task-queue.ts`. */

import type { Call } from './call.js';
import type { HttpExchange } from './http-exchange.js';

/** A remote call. */
export interface Task<T> {
  /** Service name, for metrics and logs. */
  readonly service: string;
  readonly method: string;
  readonly operation: string;
  /** Maximum duration of the call (ms), for calls with slow responses. Default: `callTimeoutMs` of the task manager. */
  readonly timeoutMs?: number;
  /**
   * Sends the remote call. Clients over HTTP send its messages with `http`, which follows redirects and adds the host,
   * the status and the content type of the answer to the messages of errors.
   */
  main(signal: AbortSignal, http: HttpExchange): Promise<T>;
}

export interface TaskManager {
  /** Number of waiting tasks. */
  readonly queueLength: number;
  /**
   * Queues the task and resolves with its result. Rejects with a `DriverError`: that of `main`, `AbortedError` if the
   * call's signal aborts first or the manager is stopped, or `TimeoutError` at the deadline, which moves by the time in
   * the queue.
   */
  submit<T>(task: Task<T>, call: Call): Promise<T>;
  /** Rejects new tasks, runs the waiting tasks, then ends. */
  stop(): void;
  /** Resolves once all tasks have ended after `stop`. */
  join(): Promise<void>;
}
