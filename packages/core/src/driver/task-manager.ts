/** Remote calls as tasks: one after another, at the configured rate. Implementation: `task-queue.ts`. */

import type { Call } from './call.js';

/** One remote call. */
export interface Task<T> {
  /** For metrics and logs. */
  readonly service: string;
  readonly method: string;
  readonly operation: string;
  /** Milliseconds that the call may take, for calls that the cloud answers late. Default: the task manager's `callTimeoutMs`. */
  readonly timeoutMs?: number;
  /** Makes the remote call. */
  main(signal: AbortSignal): Promise<T>;
}

export interface TaskManager {
  /** Tasks that wait. */
  readonly queueLength: number;
  /** Runs the task in its turn; resolves with its result. Rejects with `AbortedError` when the call's signal aborts first or the manager was stopped, with `TimeoutError` at its deadline. */
  submit<T>(task: Task<T>, call: Call): Promise<T>;
  /** Accepts nothing more, runs what waits, then ends. */
  stop(): void;
  /** Resolves once nothing runs, after `stop`. */
  join(): Promise<void>;
}
