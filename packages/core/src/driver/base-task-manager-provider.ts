/** Base class for drivers that implement `Provider` themselves and send their remote calls through a task manager. */

import type { Call } from './call.js';
import type { ProviderContext } from './api.js';
import { DriverError } from './errors.js';
import type { ProviderConfig } from './provider-config.js';
import type { Task, TaskManager } from './task-manager.js';
import { createTaskManager } from './task-queue.js';

/**
 * Manages the task manager of a provider: created at `start` with the configured rate, drained by `stop` and `join`. A
 * driver's provider extends this class or holds an instance.
 */
export class BaseTaskManagerProvider<P extends ProviderConfig = ProviderConfig> {
  private manager: TaskManager | undefined;

  constructor(readonly config: P) {}

  /** Returns the task manager. Throws before `start`. */
  get tasks(): TaskManager {
    if (this.manager === undefined) {
      throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
    }
    return this.manager;
  }

  async start(context: ProviderContext): Promise<void> {
    this.manager ??= createTaskManager({
      clock: context.clock,
      callsPerSecond: this.config.callsPerSecond,
      onApiCall: context.onApiCall,
      log: context.log,
    });
  }

  /** Queues a remote call; see `TaskManager.submit`. */
  async submitTask<T>(task: Task<T>, call: Call): Promise<T> {
    return this.tasks.submit(task, call);
  }

  stop(): void {
    this.manager?.stop();
  }

  async join(): Promise<void> {
    await this.manager?.join();
  }
}
