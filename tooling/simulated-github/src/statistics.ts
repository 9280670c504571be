/** The numbers of a scale set, from which its client derives the number of runners. */

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
