import { DriverError, QuotaError, type ImageUpload, type NodeData, type NodeProgress } from '@nodepool/core';
import type { Offer } from '@nodepool/status';
import { nameOf } from '../capacity/pool-offers.js';
import { type LauncherContext, unixSeconds } from '../context.js';
import { fits, needOf, type LaunchJob } from './launch-job.js';
import { labelFields } from './node-record.js';

/** Returns the identity of the first attempt. The caller records it before it calls `launchNodes`. */
function firstAttempt(context: LauncherContext, machineType: string | undefined): NodeProgress {
  return {
    kind: 'launch',
    attempt: context.random.uuidHex(),
    ...(machineType === undefined ? {} : { machine_type: machineType }),
    number: 1,
    started: unixSeconds(context),
    machine: null,
  };
}

/** Returns the change of a record that starts its first attempt. */
export function started(
  context: LauncherContext,
  machineType: string | undefined,
): Pick<NodeData, 'state' | 'progress'> {
  return { state: 'building', progress: firstAttempt(context, machineType) };
}

/** Returns the offer that the record was created for. */
export function recordedOffer(job: LaunchJob): Offer {
  const { label, node } = job;
  return { label: label.name, zone: node.node.az ?? undefined, machineType: recordedProgress(job).machine_type };
}

export function recordedProgress({ node }: LaunchJob): NodeProgress {
  const { progress } = node.node;
  if (progress === null) throw new DriverError('unexpected', `node ${node.id} has no launch attempt recorded`);
  return progress;
}

/** Returns true if a resumed attempt may have an instance that is not recorded because its launcher died. */
export function mayHaveStarted({ resumed, node }: LaunchJob): boolean {
  const { progress, external_id: externalId } = node.node;
  return resumed && progress?.machine === null && externalId === null;
}

/**
 * Returns the fields of the record that the next attempt of a resumed launch changes: the configuration of the label
 * and its image may have changed since the record was written. Throws if the label now needs more than the record
 * reserves; the request is then allocated again, which checks the limits.
 */
export function presentFields(job: LaunchJob, offer: Offer, upload: ImageUpload | undefined): Partial<NodeData> {
  if (!job.resumed) return {};
  if (!fits(job, offer)) {
    throw new QuotaError(`the configuration of ${nameOf(offer)} has changed since its launch was planned`);
  }
  return { ...labelFields({ label: job.label, upload }), resources: needOf(job, offer) };
}
