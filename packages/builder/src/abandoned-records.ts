/**
 * Marks abandoned records as `failed`, so that cleanup deletes them. Only the holder of a lock works on its image or
 * upload, so its other records in progress are those of a crashed builder.
 */

import { sleep } from '@nodepool/core';
import type { BuildHandle, UploadHandle, UploadPlace } from '@nodepool/store';
import { recordInterruptedBuild } from './build-failure.js';
import type { BuilderContext } from './context.js';

/** Attempts, and the wait between them (ms), to lock a record that cleanup may be reading at the moment. */
const ATTEMPTS = 3;
const PAUSE_MS = 1000;

export async function failAbandonedBuilds(context: BuilderContext, image: string, signal: AbortSignal): Promise<void> {
  const { images } = context.store;
  for (const build of images.builds(image)) {
    if (build.state !== 'building') continue;
    await markFailed(context, signal, async () => {
      const handle = await images.tryLockBuild(build, { change: { state: 'failed' }, signal });
      if (handle !== undefined) await recordInterruptedBuild(context, handle);
      return handle;
    });
  }
}

export async function failAbandonedUploads(
  context: BuilderContext,
  { image, build, provider }: UploadPlace,
  signal: AbortSignal,
): Promise<void> {
  const { images } = context.store;
  for (const upload of [...images.uploads({ image, build, provider })]) {
    if (upload.state !== 'uploading') continue;
    await markFailed(context, signal, () => images.tryLockUpload(upload, { change: { state: 'failed' }, signal }));
  }
}

/** Marks a record as failed. A record that stays locked is left to a later cleanup. */
async function markFailed(
  { clock }: BuilderContext,
  signal: AbortSignal,
  tryLock: () => Promise<BuildHandle | UploadHandle | undefined>,
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const handle = await tryLock();
    if (handle !== undefined) return handle.lock.release();
    if (attempt < ATTEMPTS) await sleep(clock, PAUSE_MS, signal);
  }
}
