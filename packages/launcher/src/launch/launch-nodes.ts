/**
 * Launches the nodes of a request: creates each instance through the driver and waits for its login, with up to
 * `launch-retries` attempts. The identity of every attempt is recorded before the cloud is called.
 */

import {
  AbortedError,
  InstanceFailedError,
  sleep,
  toDriverError,
  type DriverError,
  type ImageUpload,
  type NodeData,
} from '@nodepool/core';
import type { Offer } from '@nodepool/status';
import { LostOwnershipError } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { faultOf, type LaunchFault } from '../capacity/launch-fault.js';
import { nameOf } from '../capacity/pool-offers.js';
import type { LauncherContext } from '../context.js';
import { LaunchAttempt } from './launch-attempt.js';
import { canBeLeft, canMoveOn, needOf, placeOf, type AttemptFacts, type LaunchJob } from './launch-job.js';
import { attemptFailed, observeLaunch, type ReportResult } from './launch-report.js';
import { LaunchRetries } from './launch-retries.js';
import { imageAfterFailure, isBarred, trialAfter } from './image-trial.js';
import { replacementFor } from './missing-image.js';
import { imageIdOf } from './node-record.js';
import { mayHaveStarted, presentFields, recordedOffer, recordedProgress } from './recorded-attempt.js';
import { retryCapacity } from './retry-capacity.js';

export type Launched =
  /** `changes` make the nodes ready, in the order of the jobs. The change of a node already written is empty. */
  | { readonly kind: 'launched'; readonly changes: readonly Partial<NodeData>[] }
  /** `job`: the first that failed. */
  | { readonly kind: 'failed'; readonly job: LaunchJob; readonly error: unknown };

/** Resolves once every launch has ended. `onFailure` is called at the first failure and must abort the other jobs. */
export async function launchNodes(
  context: LauncherContext,
  jobs: readonly LaunchJob[],
  onFailure: (failed: Extract<Launched, { kind: 'failed' }>) => void,
): Promise<Launched> {
  let outstanding = jobs.length;
  let failed: Extract<Launched, { kind: 'failed' }> | undefined;
  const changes = await Promise.all(
    jobs.map(async (job): Promise<Partial<NodeData>> => {
      try {
        const change = await launchNode(context, job);
        outstanding -= 1;
        if (outstanding === 0) return change;
        // Other launches of the request are still running: the record must survive a crash of this process.
        await job.node.update(change);
      } catch (error) {
        if (failed === undefined) {
          failed = { kind: 'failed', job, error };
          onFailure(failed);
        }
      }
      return {};
    }),
  );
  return failed ?? { kind: 'launched', changes };
}

/**
 * Resolves with the change that makes the node `ready`, which is written when the request is fulfilled. Rejects with
 * the `DriverError` of the last attempt, whose instance is deleted with the node.
 */
async function launchNode(context: LauncherContext, job: LaunchJob): Promise<Partial<NodeData>> {
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
    const image = imageAfterFailure(context, job, upload, tried.fault);
    const replacement =
      image.other ?? (await replacementFor(context, { ...job, provider: job.pool.provider }, upload, failure));
    if (replacement === undefined && retries.isConfirmed(failure, offer)) {
      job.report({ kind: 'attempt-failed', attempt: tried, fault, failure });
    }
    const next =
      replacement === undefined
        ? retries.next(failure, fault, offer, progress.number)
        : { delayMs: 0, offer, number: progress.number };
    if (next === undefined || (image.isUnusable && replacement === undefined)) {
      if (image.trial !== undefined) await job.node.update({ trial: image.trial });
      throw failure;
    }
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
      ...(image.trial === undefined ? {} : { trial: image.trial }),
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
    canBeLeft: () => canBeLeft(job),
    abandon,
    leave: (reason) => job.leave(reason),
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
    const change = { ...(await launch.run()), ...trialAfter(context, job, startedAt) };
    if (isBarred(context, upload)) throw new InstanceFailedError('its image was rejected during the launch');
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

function aborted(job: LaunchJob): DriverError {
  return new AbortedError(`the launch of node ${job.node.id} was aborted`, { cause: job.signal.reason });
}
