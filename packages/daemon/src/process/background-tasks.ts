import { TaskSupervisor, type Clock, type Logger } from '@nodepool/core';

/** Creates the supervisor of a program's background work, which logs failures. */
export function superviseTasks(clock: Clock, log: Logger): TaskSupervisor {
  return new TaskSupervisor(clock, (task, error, about) =>
    log.error('Background work failed', error, { ...about, task }),
  );
}
