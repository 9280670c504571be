/** The part of a launch in the trial of an image, and the image with which a failed launch continues. */

import type { ImageUpload, NodeData, NodeTrial } from '@nodepool/core';
import { pathOf } from '@nodepool/store';
import type { LaunchFault } from '../capacity/launch-fault.js';
import type { LauncherContext } from '../context.js';
import type { LaunchJob } from './launch-job.js';
import { otherUpload } from './missing-image.js';

export interface ImageAfterFailure {
  /** The upload with which the launch continues at once, at the cost of no attempt; undefined to keep the upload. */
  readonly other: ImageUpload | undefined;
  /** True if the upload must not be used again. */
  readonly isUnusable: boolean;
  /** The trial with the outcome, to be written to the node's record; undefined if it does not change. */
  readonly trial: NodeTrial | undefined;
}

/** Returns true if the upload has been rejected or revoked. */
export function isBarred({ store }: LauncherContext, upload: ImageUpload | undefined): boolean {
  return upload !== undefined && store.images.isBarred(pathOf(upload));
}

/**
 * Returns how a failed attempt affects the image. A launch that fails on an upload in its trial, by a fault that the
 * image can cause, continues with the current upload.
 */
export function imageAfterFailure(
  context: LauncherContext,
  job: LaunchJob,
  upload: ImageUpload | undefined,
  { scope, cause }: LaunchFault,
): ImageAfterFailure {
  const barred = isBarred(context, upload);
  const { trial } = job.node.node;
  const mayBeImage = scope === 'node' || (scope === 'offer' && (cause === 'configuration' || cause === 'refused'));
  const ended = isOpen(trial) && mayBeImage && !barred ? { ...trial, launch: 'failed' } : undefined;
  const leaves = barred || ended?.candidate === true;
  const place = { provider: job.pool.provider, request: job.request };
  return {
    other: leaves && upload !== undefined ? otherUpload(context, place, upload) : undefined,
    isUnusable: barred,
    trial: ended,
  };
}

/** Returns the change of the record of a node whose attempt has succeeded. */
export function trialAfter({ clock }: LauncherContext, { node }: LaunchJob, startedAt: number): Partial<NodeData> {
  const { trial } = node.node;
  if (!isOpen(trial)) return {};
  return { trial: { ...trial, launch: 'ready', seconds: Math.round(clock.monotonic() - startedAt) / 1000 } };
}

/** Returns true until the first attempt of the launch has ended. */
function isOpen(trial: NodeTrial | null | undefined): trial is NodeTrial {
  return trial !== undefined && trial !== null && trial.launch === null;
}
