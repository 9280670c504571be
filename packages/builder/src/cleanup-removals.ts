/** Deletes one build or one upload, under its lock and after planning again from the current records. */

import type { Call, ExternalId, ImageUpload, ListedImage, Reconciled } from '@nodepool/core';
import { driverCall, logCloudDeletion } from '@nodepool/core';
import type { LockedUploadHandle } from '@nodepool/store';
import { recordInterruptedBuild } from './build-failure.js';
import type { BuildCleanup, CleanupPlan } from './cleanup-plan.js';
import type { BuilderContext } from './context.js';
import type { ImageProvider } from './image-providers.js';

/** Time limit (ms) for a cloud to delete an image. */
const DELETE_TIMEOUT_MS = 600_000;
/**
 * Minimum time (ms) between two lists that lack an image, after which its record is deleted. An upload interrupted
 * before its id was known may still create an image by a call in flight, so one list proves nothing.
 */
const SETTLE_MS = 60_000;
/** Maximum delay (ms) until the next attempt if another process holds the lock. */
const LOCKED_RETRY_MS = 5000;

/** A current build id; old ones are a sequence per image. */
const UNIQUE_BUILD = /^[0-9a-f]{32}$/;

/** A delay, because the change of the image by this lock itself must not end the wait. */
export const LATER: Reconciled = { pauseMs: LOCKED_RETRY_MS };

export interface RemovalContext {
  readonly builder: BuilderContext;
  readonly signal: AbortSignal;
  /** By upload: time (`Clock.monotonic`, ms) of the first list without its image, or of the image's deletion. */
  readonly lacking: Map<string, number>;
  /** Returns the current plan of an image; undefined if the records are incomplete. */
  readonly plan: (image: string) => CleanupPlan | undefined;
}

/** Deletes an upload. Rejects if the cloud refuses; the record stays `deleting`. */
export async function removeUpload(
  context: RemovalContext,
  upload: ImageUpload,
  why: string,
  provider: ImageProvider,
): Promise<Reconciled> {
  const { store } = context.builder;
  const handle = await store.images.tryLockUpload(upload, { signal: context.signal });
  if (handle === undefined) return LATER;
  try {
    await store.images.syncCache({ signal: context.signal });
    const planned = context.plan(upload.image)?.uploads ?? [];
    if (!planned.some(({ upload: other }) => isSameUpload(other, upload))) return 'done';
    if (handle.upload.state !== 'deleting') {
      const { image, build, id } = upload;
      provider.log.info('Deleting an upload', { image, build_id: build, upload_id: id, because: why });
      await handle.update({ state: 'deleting' });
    }
    const waitMs = await deleteFromCloud(context, handle, provider, why);
    if (waitMs > 0) return { pauseMs: waitMs };
    return (await handle.remove()) ? 'done' : LATER;
  } finally {
    await handle.lock.release();
  }
}

/** Deletes the images of an upload. Resolves with the ms until the next check for a late image; 0 if there is none. */
async function deleteFromCloud(
  { builder, signal, lacking }: RemovalContext,
  { upload, lock }: LockedUploadHandle,
  { images, config, log }: ImageProvider,
  why: string,
): Promise<number> {
  const { image, build, id } = upload;
  const deletion = (externalId: ExternalId): void =>
    logCloudDeletion(log.with({ image, build_id: build, upload_id: id }), { kind: 'image', externalId }, why);
  const call: Call = { signal, deadline: builder.clock.monotonic() + DELETE_TIMEOUT_MS, log };
  const what = `of image ${upload.image} at provider ${config.name}`;
  const { external_id: externalId } = upload;
  if (externalId !== null) {
    deletion(externalId);
    await driverCall(builder.clock, `the deletion ${what}`, call, (guarded) => images.deleteImage(externalId, guarded));
    return 0;
  }
  const suspension = await builder.store.suspensions.check(upload.provider, { signal });
  if (suspension !== undefined) {
    const fields = { image, build_id: build, upload_id: id, reason: suspension.reason };
    log.debug('The deletion of an upload waits, because deletions by tag are suspended', fields);
    return SETTLE_MS;
  }
  const listed = await driverCall(builder.clock, `the list ${what}`, call, (guarded) => images.listImages(guarded));
  for (const { externalId: found, tags } of listed) {
    if (!isImageOf(upload, builder.store.installation.id, tags)) continue;
    lock.lost.throwIfAborted();
    lacking.delete(lock.path);
    deletion(found);
    await driverCall(builder.clock, `the deletion ${what}`, call, (guarded) => images.deleteImage(found, guarded));
  }
  const now = builder.clock.monotonic();
  const firstAt = lacking.get(lock.path) ?? now;
  lacking.set(lock.path, firstAt);
  const leftMs = Math.max(0, SETTLE_MS - (now - firstAt));
  if (leftMs === 0) lacking.delete(lock.path);
  return leftMs;
}

/**
 * Returns true if the tags of an image identify this upload. Images of the Python Nodepool have no tags for
 * installation, image and format: those match only if the build's id is globally unique.
 */
function isImageOf(upload: ImageUpload, installation: string, tags: ListedImage['tags']): boolean {
  const { nodepool_installation: of, nodepool_image_name: image, nodepool_image_format: format } = tags;
  if (
    tags.nodepool_provider_name !== upload.provider ||
    tags.nodepool_build_id !== upload.build ||
    tags.nodepool_upload_id !== upload.id
  ) {
    return false;
  }
  const hasImage = image === upload.image;
  const hasFormat = upload.format === null || format === upload.format;
  if (of !== undefined) return of === installation && hasImage && hasFormat;
  return UNIQUE_BUILD.test(upload.build) && (image === undefined || hasImage) && (format === undefined || hasFormat);
}

/** Deletes a build. Rejects if the files cannot be deleted; the record stays `deleting`. */
export async function removeBuild(
  context: RemovalContext,
  { build: { image, id } }: BuildCleanup,
): Promise<{ readonly removal: Reconciled; readonly filesRemoved: boolean }> {
  const { builder, signal } = context;
  const handle = await builder.store.images.tryLockBuild({ image, id }, { signal });
  if (handle === undefined) return { removal: LATER, filesRemoved: false };
  try {
    await builder.store.images.syncCache({ signal });
    const plan = context.plan(image);
    const cleanup = plan?.builds.find(({ build }) => build.id === id);
    if (plan === undefined || cleanup === undefined) return { removal: 'done', filesRemoved: false };
    if (handle.build.state !== 'deleting') {
      builder.log.info('Deleting a build', { image, build_id: id, because: cleanup.why });
      if (handle.build.state === 'building') await recordInterruptedBuild(builder, handle);
      await handle.update({ state: 'deleting' });
    }
    if (cleanup.files) await builder.files.remove({ image, id });
    const removed = cleanup.record && (await handle.remove());
    // This builder no longer builds the image. The call has no effect if other builders still have builds of it. A
    // pause also applies to builders that have the image configured.
    const { images } = builder.store;
    if (removed && !plan.configured && !images.paused(image)) await images.removeImage(image, { signal });
    return { removal: removed || !cleanup.record ? 'done' : LATER, filesRemoved: cleanup.files };
  } finally {
    await handle.lock.release();
  }
}

function isSameUpload(a: ImageUpload, b: ImageUpload): boolean {
  return a.id === b.id && a.build === b.build && a.provider === b.provider;
}
