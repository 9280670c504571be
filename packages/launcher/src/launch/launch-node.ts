/**
 * Launches one node: creates an instance through the driver, as often as `launch-retries` allows, until its login
 * answers. The identity of every attempt is recorded before the cloud is called.
 */

import {
  AbortedError,
  DriverError,
  ERROR_POLICIES,
  sleep,
  toDriverError,
  type LaunchErrorResult,
  type NodeData,
  type NodeProgress,
} from '@nodepool/core';
import { LostOwnershipError } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { type LauncherContext, unixSeconds } from '../context.js';
import { LaunchAttempt, NoAddressError } from './launch-attempt.js';
import { placeOf, type LaunchJob } from './launch-job.js';
import { LaunchRetries } from './launch-retries.js';
import { replacementFor } from './missing-image.js';
import { imageIdOf } from './node-record.js';
import { FAILED_ATTEMPTS, LAUNCHES } from '../diagnostics/launcher-metrics.js';
import { retryCapacity } from './retry-capacity.js';

/** Returns the identity of the first attempt, which is recorded before `launchNode`. */
export function firstAttempt(context: LauncherContext): NodeProgress {
  return {
    kind: 'launch',
    attempt: context.random.uuidHex(),
    number: 1,
    started: unixSeconds(context),
    machine: null,
  };
}

/**
 * Resolves with the change that makes the node `ready`, which is written with the hand-over of the request. Rejects
 * with the `DriverError` of the last attempt; the deletion of the node removes what that left in the cloud.
 */
export async function launchNode(context: LauncherContext, job: LaunchJob): Promise<Partial<NodeData>> {
  const startedAt = context.clock.monotonic();
  const report: ReportResult = (result, az) => observeLaunch(context, job, startedAt, result, az);
  try {
    const change = await launchWithRetries(context, job, report);
    report('ready', change.az);
    return change;
  } catch (error) {
    if (error instanceof LostOwnershipError || isZooKeeperError(error)) report('error.zksession');
    throw error;
  }
}

/** Reports that the node is ready, or that an attempt failed. */
type ReportResult = (result: 'ready' | LaunchErrorResult, az?: string | null) => void;

function observeLaunch(
  context: LauncherContext,
  job: LaunchJob,
  startedAt: number,
  result: string,
  az: string | null | undefined,
): void {
  const labels = {
    provider: job.provider.config.name,
    az: az ?? job.node.node.az ?? '',
    requestor: job.requestor ?? '',
    result,
  };
  context.metrics.observe(LAUNCHES, labels, context.clock.monotonic() - startedAt);
}

/** Records a failed attempt in the log, the metrics, and the decisions that `explain` shows. */
function attemptFailed(
  context: LauncherContext,
  job: LaunchJob,
  progress: NodeProgress,
  failure: DriverError,
  report: ReportResult,
): void {
  const policy = ERROR_POLICIES[failure.code];
  job.log[policy.log === 'error' ? 'warn' : policy.log]('Launch attempt failed', {
    attempt: progress.number,
    code: failure.code,
    error: failure,
  });
  const where = placeOf(job);
  const { provider } = where;
  context.metrics.count(FAILED_ATTEMPTS, { ...where, reason: failure.code });
  const result = failure instanceof NoAddressError ? 'error.network' : policy.metric;
  if (result !== undefined) report(result);
  const by = `${provider}/${job.pool.name}`;
  context.decisions.record('node', job.node.id, by, `launch attempt ${progress.number} failed`, failure.message);
  const { code, message } = failure;
  context.timelines.attempted(job.node.id, where, { number: progress.number, error: { code, message } });
  if (failure.code !== 'aborted')
    context.decisions.record('label', where.label, by, 'a launch failed', failure.message);
}

async function launchWithRetries(
  context: LauncherContext,
  job: LaunchJob,
  report: ReportResult,
): Promise<Partial<NodeData>> {
  let interrupted = mayHaveBegun(job);
  const retries = new LaunchRetries(context, job);
  let { upload } = job;
  for (;;) {
    let attempt: LaunchAttempt | undefined;
    try {
      attempt = new LaunchAttempt(context, { ...job, upload }, recordedProgress(job), interrupted);
      const change = await attempt.run();
      const { number } = recordedProgress(job);
      context.timelines.attempted(job.node.id, placeOf(job), { number, error: undefined });
      context.timelines.stage(job.node.id, placeOf(job), 'launched');
      job.onAttempt(undefined);
      return change;
    } catch (error) {
      // The record is locked by another launcher, or cannot be written: this launcher must not give the instance up.
      if (error instanceof LostOwnershipError || isZooKeeperError(error)) throw error;
      const failure = job.signal.aborted ? aborted(job) : toDriverError(error);
      const policy = ERROR_POLICIES[failure.code];
      const progress = recordedProgress(job);
      if (interrupted && failure.outcome === 'not-applied' && failure.code === 'transient') {
        interrupted = false;
        job.log.info('An interrupted launch had not created anything; it starts again', { reason: failure.message });
        await job.node.update({ progress: { ...progress, attempt: context.random.uuidHex() } });
        // The earlier process may have left an instance.
        await retryCapacity(context, job, job.node.id);
        continue;
      }
      interrupted = false;
      attemptFailed(context, job, progress, failure, report);
      const replacement = await replacementFor(context, job, upload, failure);
      if (replacement === undefined) job.onAttempt(failure);
      const delayMs = replacement === undefined ? retries.next(failure, progress.number) : 0;
      if (delayMs === undefined) throw failure;
      const remnant = await attempt?.leaveRemnant();
      if (delayMs > 0) await sleep(context.clock, delayMs, job.signal);
      upload = replacement ?? upload;
      await job.node.update({
        external_id: null,
        ...(replacement === undefined ? {} : { image_id: imageIdOf(replacement) }),
        progress: {
          ...progress,
          attempt: context.random.uuidHex(),
          number: progress.number + (policy.countsAsAttempt && replacement === undefined ? 1 : 0),
          machine: null,
        },
      });
      if (remnant !== undefined) await retryCapacity(context, job, remnant);
    }
  }
}

function recordedProgress({ node }: LaunchJob): NodeProgress {
  const { progress } = node.node;
  if (progress === null) throw new DriverError('unexpected', `node ${node.id} has no launch attempt recorded`);
  return progress;
}

/** Returns true if a resumed attempt may have an instance that its launcher could not record before it died. */
function mayHaveBegun({ resumed, node }: LaunchJob): boolean {
  const { progress, external_id: externalId } = node.node;
  return resumed && progress?.machine === null && externalId === null;
}

function aborted(job: LaunchJob): DriverError {
  return new AbortedError(`the launch of node ${job.node.id} was given up`, { cause: job.signal.reason });
}
