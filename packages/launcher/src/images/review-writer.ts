/** Writes the review of an upload under its lock, from the record as the server has it. */

import { advanceReview, type ImageReview, type ImageUpload, type ReviewEvent } from '@nodepool/core';
import { type LauncherContext, unixSeconds } from '../context.js';

/**
 * Changes the review. Resolves with false, changing nothing, if another process has the lock, if the record has changed
 * since `upload` was read, or if `next` returns undefined.
 */
export async function writeReview(
  { store }: LauncherContext,
  upload: ImageUpload,
  review: ImageReview,
  signal: AbortSignal,
): Promise<boolean> {
  // An unchanged object: a changed record has been parsed again.
  if (store.images.upload(upload) !== upload) return false;
  const handle = await store.images.tryLockUpload(upload, { change: { review }, signal });
  await handle?.lock.release();
  return handle !== undefined;
}

/** Moves the upload to the next stage. Resolves with false as `writeReview` does, or if its stage forbids the event. */
export async function advance(
  context: LauncherContext,
  upload: ImageUpload,
  event: ReviewEvent,
  reason: string,
  signal: AbortSignal,
  details: Partial<Pick<ImageReview, 'trial'>> = {},
): Promise<boolean> {
  const { review, state_time: since } = upload;
  const change = { since: unixSeconds(context), by: `nodepool-launcher ${context.hostname}`, reason };
  const next = advanceReview({ review: review ?? undefined, since }, event, change);
  if (next === undefined || !(await writeReview(context, upload, { ...next, ...details }, signal))) return false;
  const { image, build, id, provider } = upload;
  const fields = { image, provider, build_id: build, upload_id: id, stage: next.stage, reason };
  if (event === 'reject') context.log.warn('An image is rejected', fields);
  else context.log.info('An image has reached the next stage of its review', fields);
  return true;
}
