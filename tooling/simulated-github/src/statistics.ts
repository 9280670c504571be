/** The numbers of a scale set, from which its client derives the number of runners. */

import type { ScaleSet } from './records.js';

export interface Statistics {
  /** Queued jobs that the scale set could serve. */
  readonly totalAvailableJobs: number;
  /** Jobs that it has acquired and that are not yet assigned to it. */
  readonly totalAcquiredJobs: number;
  /** Jobs that are assigned to it, including those that run. */
  readonly totalAssignedJobs: number;
  readonly totalRunningJobs: number;
  readonly totalRegisteredRunners: number;
  readonly totalBusyRunners: number;
  /** Runners that are online without a job. */
  readonly totalIdleRunners: number;
}

/** Returns the statistics of a scale set; `available` is the number of queued jobs that it could serve. */
export function statisticsOf({ jobs, runners }: ScaleSet, available: number): Statistics {
  const states = [...jobs].map(({ state }) => state);
  const acquired = states.filter((state) => state === 'acquired').length;
  const all = [...runners];
  return {
    totalAvailableJobs: available,
    totalAcquiredJobs: acquired,
    totalAssignedJobs: states.length - acquired,
    totalRunningJobs: states.filter((state) => state === 'running').length,
    totalRegisteredRunners: all.length,
    totalBusyRunners: all.filter(({ job }) => job?.state === 'running').length,
    totalIdleRunners: all.filter(({ job, session }) => session !== undefined && job === undefined).length,
  };
}
