/** Supervised background work. Every task has a name, appears in the stack dump, and has its failure reported. */

import type { LogFields } from './logger.js';
import type { Clock } from './clock.js';
import { Latch } from './latch.js';

/** A running task in the stack dump. */
export interface TaskInfo {
  readonly name: string;
  readonly ageMs: number;
  /** Event that the task waits for, if the task has reported it. */
  readonly waitingFor: string | undefined;
  /** Stack trace of the start of the task, or of the creation of the queue that started it. */
  readonly startedFrom: string;
}

/**
 * Stack trace of the caller of the function that creates it. An owner that starts many tasks creates one for all of
 * them, because capturing a stack trace takes longer than starting a task.
 */
export class TaskOrigin {
  private readonly origin: { stack?: string } = {};

  constructor() {
    // The stack stays unformatted, since formatting it costs far more than capturing it.
    Error.captureStackTrace(this.origin);
  }

  toString(): string {
    return (this.origin.stack ?? '').split('\n').slice(3).join('\n');
  }
}

/** Reports the state of a task. */
export interface TaskHandle {
  /** Reports the event that the task waits for from now on; undefined if the task does not wait. */
  waitingFor(what: string | undefined): void;
}

export class TaskSupervisor {
  private readonly running = new Set<RunningTask>();
  private readonly idleness = new Latch(true);

  /** `onFailure` is called for every task that rejects, with its log fields, after its removal from the list. */
  constructor(
    private readonly clock: Clock,
    private readonly onFailure: (name: string, error: unknown, about: LogFields | undefined) => void,
  ) {}

  /**
   * Starts `work` immediately. A rejection is reported to `onFailure` and not propagated. `about` has the log fields of
   * the task, e.g. `node_id`, or returns them.
   */
  run(
    name: string,
    work: (task: TaskHandle) => Promise<void>,
    about?: LogFields | (() => LogFields),
    origin = new TaskOrigin(),
  ): void {
    const task = new RunningTask(name, this.clock.monotonic(), origin);
    this.running.add(task);
    this.idleness.close();
    void this.supervise(task, work, about);
  }

  get size(): number {
    return this.running.size;
  }

  list(): TaskInfo[] {
    const now = this.clock.monotonic();
    return [...this.running].map((task) => ({
      name: task.name,
      ageMs: now - task.startedAt,
      waitingFor: task.waiting,
      startedFrom: String(task.origin),
    }));
  }

  /** Resolves once no task runs. */
  idle(): Promise<void> {
    return this.idleness.wait();
  }

  private async supervise(
    task: RunningTask,
    work: (task: TaskHandle) => Promise<void>,
    about: LogFields | (() => LogFields) | undefined,
  ): Promise<void> {
    let failure: { error: unknown } | undefined;
    try {
      await work(task);
    } catch (error) {
      failure = { error };
    }
    this.running.delete(task);
    if (failure !== undefined) this.onFailure(task.name, failure.error, typeof about === 'function' ? about() : about);
    if (this.running.size === 0) this.idleness.open();
  }
}

class RunningTask implements TaskHandle {
  waiting: string | undefined;

  constructor(
    readonly name: string,
    readonly startedAt: number,
    readonly origin: TaskOrigin,
  ) {}

  waitingFor(what: string | undefined): void {
    this.waiting = what;
  }
}
