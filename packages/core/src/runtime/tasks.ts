/**
 * Supervised background work: every piece is named, counted, visible in a stack dump, and its failure is heard of.
 */

import type { LogFields } from './logger.js';
import type { Clock } from './clock.js';
import { Latch } from './latch.js';

/** A running task, as a stack dump shows it. */
export interface TaskInfo {
  readonly name: string;
  readonly ageMs: number;
  /** What the task says that it waits for, if it says so. */
  readonly waitingFor: string | undefined;
  /** Stack of where it was started. */
  readonly startedFrom: string;
}

/** What a task gets to tell about itself. */
export interface TaskHandle {
  /** Tells what the task waits for from now on; undefined: for nothing. */
  waitingFor(what: string | undefined): void;
}

export class TaskSupervisor {
  private readonly running = new Set<RunningTask>();
  private readonly idleness = new Latch(true);

  /** `onFailure` hears of every task that rejects, and what it was about, after the task was taken off the list. */
  constructor(
    private readonly clock: Clock,
    private readonly onFailure: (name: string, error: unknown, about: LogFields | undefined) => void,
  ) {}

  /**
   * Starts `work` at once. A rejection goes to `onFailure`, never further. `about`: fields for the log that say what it
   * is about, e.g. `node_id`.
   */
  run(name: string, work: (task: TaskHandle) => Promise<void>, about?: LogFields): void {
    const task = new RunningTask(name, this.clock.monotonic());
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
      startedFrom: task.startedFrom,
    }));
  }

  /** Resolves once nothing runs. */
  idle(): Promise<void> {
    return this.idleness.wait();
  }

  private async supervise(
    task: RunningTask,
    work: (task: TaskHandle) => Promise<void>,
    about: LogFields | undefined,
  ): Promise<void> {
    let failure: { error: unknown } | undefined;
    try {
      await work(task);
    } catch (error) {
      failure = { error };
    }
    this.running.delete(task);
    if (failure !== undefined) this.onFailure(task.name, failure.error, about);
    if (this.running.size === 0) this.idleness.open();
  }
}

class RunningTask implements TaskHandle {
  waiting: string | undefined;
  private readonly origin: { stack?: string } = {};

  constructor(
    readonly name: string,
    readonly startedAt: number,
  ) {
    // Kept unformatted: formatting the stack costs far more than capturing it.
    Error.captureStackTrace(this.origin);
  }

  get startedFrom(): string {
    return (this.origin.stack ?? '').split('\n').slice(3).join('\n');
  }

  waitingFor(what: string | undefined): void {
    this.waiting = what;
  }
}
