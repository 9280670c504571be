/** Reports the attempts of a launch to the log, the metrics, the timelines and the decisions of `explain`. */

import { ERROR_POLICIES, type DriverError, type FaultScope, type LaunchErrorResult } from '@nodepool/core';
import type { Offer } from '@nodepool/status';
import { nameOf } from '../capacity/pool-offers.js';
import { StrandedLaunchError } from '../capacity/stranded-launches.js';
import type { LauncherContext } from '../context.js';
import { FAILED_ATTEMPTS, LAUNCHES } from '../metrics/launcher-metrics.js';
import { NoAddressError } from './launch-attempt.js';
import { placeOf, type LaunchJob } from './launch-job.js';

/** Reports that the node is ready, or that an attempt failed. */
export type ReportResult = (result: 'ready' | LaunchErrorResult, az?: string | null) => void;

export function observeLaunch(
  context: LauncherContext,
  job: LaunchJob,
  startedAt: number,
  result: string,
  az: string | null | undefined,
): void {
  const labels = {
    provider: job.pool.place.provider,
    az: az ?? job.node.node.az ?? '',
    requestor: job.request.requestor ?? '',
    result,
  };
  context.metrics.observe(LAUNCHES, labels, context.clock.monotonic() - startedAt);
}

/** Records a failed attempt in the log, the metrics, and the decisions that `explain` shows. */
export function attemptFailed(
  context: LauncherContext,
  job: LaunchJob,
  { offer, number, scope }: { readonly offer: Offer; readonly number: number; readonly scope: FaultScope },
  failure: DriverError,
  report: ReportResult,
): void {
  const policy = ERROR_POLICIES[failure.code];
  job.log[policy.log === 'error' ? 'warn' : policy.log](
    failure.code === 'aborted' ? 'Launch attempt aborted' : 'Launch attempt failed',
    {
      attempt: number,
      offer: nameOf(offer),
      code: failure.code,
      error: failure,
    },
  );
  const where = placeOf(job);
  // An aborted attempt says nothing about the cloud: its request was cancelled, or the launcher stops.
  const isAborted = failure.code === 'aborted';
  if (!isAborted) context.metrics.count(FAILED_ATTEMPTS, { ...where, reason: failure.code });
  const result = failure instanceof NoAddressError ? 'error.network' : policy.metric;
  if (result !== undefined) report(result);
  const by = job.pool.name;
  context.decisions.record(
    'node',
    job.node.id,
    by,
    `launch attempt ${number} ${isAborted ? 'aborted' : 'failed'}`,
    failure.message,
  );
  const { code, message } = failure;
  // The error repeats the known trouble of the provider, and would later pass for an answer of the cloud.
  const error = { code, message, scope: failure instanceof StrandedLaunchError ? ('none' as const) : scope };
  context.timelines.attempted(job.node.id, where, { number, offer: nameOf(offer), error });
  if (!isAborted) context.decisions.record('label', where.label, by, 'a launch failed', failure.message);
}
