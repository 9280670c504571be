/**
 * Launches one node: creates an instance through the driver and waits for its login, with up to `launch-retries`
 * attempts. The identity of every attempt is recorded before the cloud is called.
 */

import {
  AbortedError,
  DriverError,
  ERROR_POLICIES,
  QuotaError,
  sleep,
  toDriverError,
  type FaultScope,
  type ImageUpload,
  type LaunchErrorResult,
  type NodeData,
  type NodeProgress,
} from '@nodepool/core';
import { LostOwnershipError } from '@nodepool/store';
import { faultOf, type LaunchFault } from '../capacity/launch-fault.js';
import { nameOf } from '../capacity/pool-offers.js';
import type { Offer } from '@nodepool/status';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { type LauncherContext, unixSeconds } from '../context.js';
import { LaunchAttempt, NoAddressError } from './launch-attempt.js';
import { canMoveOn, fits, needOf, placeOf, type AttemptFacts, type LaunchJob } from './launch-job.js';
import { LaunchRetries } from './launch-retries.js';
import { replacementFor } from './missing-image.js';
import { imageIdOf, labelFields } from './node-record.js';
import { FAILED_ATTEMPTS, LAUNCHES } from '../metrics/launcher-metrics.js';
import { retryCapacity } from './retry-capacity.js';

/** Returns the identity of the first attempt. The caller records it before it calls `launchNode`. */
export function firstAttempt(context: LauncherContext, machineType: string | undefined): NodeProgress {
  return {
    kind: 'launch',
    attempt: context.random.uuidHex(),
    ...(machineType === undefined ? {} : { machine_type: machineType }),
    number: 1,
    started: unixSeconds(context),
    machine: null,
  };
}

/**
 * Resolves with the change that makes the node `ready`, which is written when the request is fulfilled. Rejects with
 * the `DriverError` of the last attempt, whose instance is deleted with the node.
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
    provider: job.pool.place.provider,
    az: az ?? job.node.node.az ?? '',
    requestor: job.request.requestor ?? '',
    result,
  };
  context.metrics.observe(LAUNCHES, labels, context.clock.monotonic() - startedAt);
}

/** Records a failed attempt in the log, the metrics, and the decisions that `explain` shows. */
function attemptFailed(
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
  context.timelines.attempted(job.node.id, where, { number, offer: nameOf(offer), error: { code, message, scope } });
  if (!isAborted) context.decisions.record('label', where.label, by, 'a launch failed', failure.message);
}

async function launchWithRetries(
  context: LauncherContext,
  job: LaunchJob,
  report: ReportResult,
): Promise<Partial<NodeData>> {
  let interrupted = mayHaveStarted(job);
  const retries = new LaunchRetries(context, job);
  let { upload } = job;
  let offer = recordedOffer(job);
  for (;;) {
    const tried = await attempt(context, job, { upload, offer, interrupted, retries });
    if (tried.failure === undefined) return tried.change;
    const { failure, fault } = tried;
    const progress = recordedProgress(job);
    if (interrupted && failure.outcome === 'not-applied' && failure.code === 'transient') {
      interrupted = false;
      job.log.info('An interrupted launch had not created anything; it starts again', { reason: failure.message });
      await job.node.update({
        ...presentFields(job, offer, upload),
        progress: { ...progress, attempt: context.random.uuidHex() },
      });
      // The earlier process may have left an instance, which counts until its deletion.
      await retryCapacity(context, job, job.node.id);
      continue;
    }
    interrupted = false;
    attemptFailed(context, job, { offer, number: progress.number, scope: fault.scope }, failure, report);
    const replacement = await replacementFor(context, { ...job, provider: job.pool.provider }, upload, failure);
    if (replacement === undefined && retries.isConfirmed(failure, offer)) {
      job.report({ kind: 'attempt-failed', attempt: tried, fault, failure });
    }
    const next =
      replacement === undefined
        ? retries.next(failure, fault, offer, progress.number)
        : { delayMs: 0, offer, number: progress.number };
    if (next === undefined) throw failure;
    upload = replacement ?? upload;
    const present = presentFields(job, next.offer, upload);
    const leftover = await tried.recordLeftover();
    if (next.delayMs > 0) await sleep(context.clock, next.delayMs, job.signal);
    const isOther = next.offer !== offer;
    if (isOther) {
      const [from, to] = [nameOf(offer), nameOf(next.offer)];
      job.log.info('The next launch attempt uses another offer', { from, to });
    }
    offer = next.offer;
    await job.node.update({
      ...present,
      external_id: null,
      ...(replacement === undefined ? {} : { image_id: imageIdOf(replacement) }),
      ...(isOther ? { az: offer.zone ?? job.node.node.az, resources: needOf(job, offer) } : {}),
      progress: {
        ...progress,
        attempt: context.random.uuidHex(),
        number: next.number,
        machine: null,
        machine_type: offer.machineType,
      },
    });
    if (leftover !== undefined) await retryCapacity(context, job, leftover);
  }
}

/**
 * Returns the fields of the record that the next attempt of a resumed launch changes: the configuration of the label
 * and its image may have changed since the record was written. Throws if the label now needs more than the record
 * reserves; the request is then allocated again, which checks the limits.
 */
function presentFields(job: LaunchJob, offer: Offer, upload: ImageUpload | undefined): Partial<NodeData> {
  if (!job.resumed) return {};
  if (!fits(job, offer)) {
    throw new QuotaError(`the configuration of ${nameOf(offer)} has changed since its launch was planned`);
  }
  return { ...labelFields({ label: job.label, upload }), resources: needOf(job, offer) };
}

/** Result of one attempt: the change that makes the node ready, or the failure. */
type AttemptEnd = AttemptFacts &
  (
    | { readonly failure: undefined; readonly change: Partial<NodeData> }
    | {
        readonly failure: DriverError;
        readonly fault: LaunchFault;
        readonly recordLeftover: () => Promise<string | undefined>;
      }
  );

/** The choices of one attempt. */
interface AttemptPlan {
  readonly upload: ImageUpload | undefined;
  readonly offer: Offer;
  readonly interrupted: boolean;
  readonly retries: LaunchRetries;
}

/** Attempts the launch once. Rejects if this launcher does not own the node any more. */
async function attempt(
  context: LauncherContext,
  job: LaunchJob,
  { upload, offer, interrupted, retries }: AttemptPlan,
): Promise<AttemptEnd> {
  let launch: LaunchAttempt | undefined;
  let abandoned: Error | undefined;
  const abandon = (reason: Error): void => {
    abandoned ??= reason;
    launch?.abandon(abandoned);
  };
  let refusal: DriverError | undefined;
  const timed = job.pool.watch(offer, { canMove: () => retries.canMove(offer), abandon });
  const { startedAt } = timed;
  const facts = { offer, startedAt };
  const hasInstance = (): boolean => launch?.hasInstance ?? false;
  const endWatch = job.pool.watchProvider({
    startedAt,
    lacksInstance: () => !hasInstance(),
    refusal: () => refusal,
    canMoveOn: () => canMoveOn(job),
    abandon,
  });
  try {
    const progress = recordedProgress(job);
    launch = new LaunchAttempt(context, job, upload, progress, interrupted, {
      onAccepted: () => job.report({ kind: 'reached', attempt: facts, evidence: 'accepted' }),
      onRetry: (failure) => {
        const fault = faultOf(failure, true, context.capacity.breakers);
        job.report({ kind: 'retrying', attempt: facts, fault, failure });
        if (fault.scope === 'offer') refusal = failure;
      },
    });
    const change = await launch.run();
    const place = placeOf(job);
    const { number } = recordedProgress(job);
    context.timelines.attempted(job.node.id, place, { number, offer: nameOf(offer), error: undefined });
    context.timelines.stage(job.node.id, place, 'launched');
    const isLate = timed.end(true);
    job.report({ kind: 'reached', attempt: facts, evidence: 'ready', isLate });
    return { offer, startedAt, failure: undefined, change };
  } catch (error) {
    // Another launcher has locked the record, or it cannot be written: this launcher must not delete the instance.
    if (error instanceof LostOwnershipError || isZooKeeperError(error)) throw error;
    const failure = job.signal.aborted ? aborted(job) : toDriverError(abandoned ?? error);
    const fault = faultOf(failure, hasInstance(), context.capacity.breakers);
    return { ...facts, failure, fault, recordLeftover: async () => launch?.recordLeftover() };
  } finally {
    endWatch();
    timed.end(false);
  }
}

/** Returns the offer that the record was created for. */
function recordedOffer(job: LaunchJob): Offer {
  const { label, node } = job;
  return { label: label.name, zone: node.node.az ?? undefined, machineType: recordedProgress(job).machine_type };
}

function recordedProgress({ node }: LaunchJob): NodeProgress {
  const { progress } = node.node;
  if (progress === null) throw new DriverError('unexpected', `node ${node.id} has no launch attempt recorded`);
  return progress;
}

/** Returns true if a resumed attempt may have an instance that is not recorded because its launcher died. */
function mayHaveStarted({ resumed, node }: LaunchJob): boolean {
  const { progress, external_id: externalId } = node.node;
  return resumed && progress?.machine === null && externalId === null;
}

function aborted(job: LaunchJob): DriverError {
  return new AbortedError(`the launch of node ${job.node.id} was aborted`, { cause: job.signal.reason });
}
