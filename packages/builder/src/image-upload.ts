/** One upload of one build to one provider, from the acquired lock to the record of its outcome. */

import {
  driverCall,
  hasImageTests,
  linkSignals,
  loadImageUploadSettings,
  newReview,
  reasonOf,
  TimeoutError,
  toDriverError,
  type Call,
  type ExternalId,
  type ImageBuild,
  type ImageUploadData,
  type Logger,
} from '@nodepool/core';
import type { UploadHandle, UploadingLock } from '@nodepool/store';
import { failAbandonedUploads } from './abandoned-records.js';
import { FAILED_UPLOADS, UPLOAD_DURATION } from './builder-metrics.js';
import { unixSeconds, type BuilderContext } from './context.js';
import type { DiskImageFile } from './disk-image-files.js';
import { IdleLimit } from './idle-limit.js';
import type { ImageProvider } from './image-providers.js';
import { externalNameOf } from './upload-plan.js';
import { UploadProgress } from './upload-progress.js';

export interface UploadPlan {
  readonly build: ImageBuild;
  readonly file: DiskImageFile;
  readonly provider: ImageProvider;
  /** Ends a driver's call in time, even if the driver does not react. */
}

/** Callbacks that observe an upload. */
export interface UploadObserver {
  started(upload: string): void;
  progress(sentBytes: number, totalBytes: number): void;
}

/**
 * Uploads the image. Rejects with the cause of a failure after it is recorded; if the lock is lost, nothing is written
 * any more, and cleanup deletes the image in the cloud. `stop` aborts the upload.
 */
export async function uploadImage(
  context: BuilderContext,
  lock: UploadingLock,
  plan: UploadPlan,
  stop: AbortSignal,
  observer: UploadObserver,
): Promise<void> {
  const { image, build, provider } = lock;
  await failAbandonedUploads(context, lock, stop);
  const handle = await lock.create(newUpload(context, plan), { signal: stop });
  const { upload } = handle;
  observer.started(upload.id);
  const log = plan.provider.log.with({ image, build_id: build, upload_id: upload.id });
  const linked = linkSignals(stop, lock.lock.lost);
  const startedAt = context.clock.monotonic();
  const progress = new UploadProgress(context.clock, log, handle);
  let external: Partial<ImageUploadData> = {};
  try {
    const name = externalNameOf(settingsOf(plan).imageNameFormat, {
      image,
      upload: upload.id,
      now: unixSeconds(context),
    });
    const externalId = await send(context, handle, plan, { name, log, signal: linked.signal, observer, progress });
    external = { external_id: externalId, external_name: name };
    await runHook(context, plan, externalId, log, linked.signal);
    await progress.settled();
    await handle.release({ state: 'ready', progress: null, ...external, ...reviewOf(context, plan) });
    const durationMs = context.clock.monotonic() - startedAt;
    context.metrics.observe(UPLOAD_DURATION, { image, provider }, durationMs);
    const seconds = Math.round(durationMs) / 1000;
    log.info('The image is uploaded', { external_id: externalId, external_name: name, seconds });
  } catch (error) {
    context.metrics.count(FAILED_UPLOADS, { image, provider, reason: toDriverError(error).code });
    await progress.settled();
    await fail(handle, external, log);
    throw error;
  } finally {
    linked.unlink();
  }
}

/** Returns the review of an upload that is tested before requests use it. */
function reviewOf(context: BuilderContext, { build, provider }: UploadPlan): Pick<ImageUploadData, 'review'> {
  const tests = provider.config.diskImages.get(build.image)?.tests;
  if (tests === undefined || !hasImageTests(tests)) return {};
  const tested = build.boot_tested === true ? 'it is uploaded; its build has passed the boot test' : 'it is uploaded';
  return { review: newReview(unixSeconds(context), `nodepool-builder ${context.hostname}`, tested) };
}

function settingsOf({ provider: { config } }: UploadPlan): ReturnType<typeof loadImageUploadSettings> {
  return config.imageUpload ?? loadImageUploadSettings({});
}

function newUpload(context: BuilderContext, { build, file }: UploadPlan): ImageUploadData {
  return {
    state: 'uploading',
    state_time: unixSeconds(context),
    external_id: null,
    external_name: null,
    // Identifies the image of an interrupted upload.
    format: file.format,
    username: build.username,
    python_path: build.python_path,
    shell_type: build.shell_type,
  };
}

interface TransferContext {
  readonly name: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly observer: UploadObserver;
  readonly progress: UploadProgress;
}

async function send(
  { clock, files, store }: BuilderContext,
  { upload }: UploadHandle,
  plan: UploadPlan,
  { name, log, signal, observer, progress }: TransferContext,
): Promise<ExternalId> {
  const { provider, file } = plan;
  const { imageUploadTimeoutMs, imageUploadIdleTimeoutMs } = settingsOf(plan);
  const { md5, sha256 } = await files.checksums(file);
  log.info('Uploading an image', { file: file.path, bytes: file.bytes, external_name: name });
  const what = `the upload of ${file.path}`;
  const idle = new IdleLimit(clock, imageUploadIdleTimeoutMs);
  const linked = linkSignals(signal, idle.signal);
  const call: Call = { signal: linked.signal, deadline: clock.monotonic() + imageUploadTimeoutMs, log };
  try {
    return await driverCall(clock, what, call, (guarded) =>
      provider.images.uploadImage({
        ...guarded,
        image: upload.image,
        externalName: name,
        file: file.path,
        format: file.format,
        md5,
        sha256,
        metadata: provider.config.diskImages.get(upload.image)?.metadata ?? {},
        tags: {
          nodepool_installation: store.installation.id,
          nodepool_provider_name: upload.provider,
          nodepool_image_name: upload.image,
          nodepool_build_id: upload.build,
          nodepool_upload_id: upload.id,
          nodepool_image_format: file.format,
        },
        progress: (sentBytes, totalBytes) => {
          idle.progressed();
          observer.progress(sentBytes, totalBytes);
          progress.report(sentBytes, totalBytes);
        },
      }),
    );
  } catch (error) {
    if (!idle.signal.aborted) throw error;
    const limit = `${imageUploadIdleTimeoutMs / 1000} s (image-upload-idle-timeout)`;
    throw new TimeoutError(`${what} made no progress for ${limit}`, { cause: error });
  } finally {
    idle.stop();
    linked.unlink();
  }
}

/** Runs the hook, with the time limit of the upload. */
async function runHook(
  { hook, clock }: BuilderContext,
  plan: UploadPlan,
  externalId: ExternalId,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { postUploadHook: command, imageUploadTimeoutMs } = settingsOf(plan);
  if (command === undefined) return;
  const call: Call = { signal, deadline: clock.monotonic() + imageUploadTimeoutMs, log };
  const { name: provider } = plan.provider.config;
  await driverCall(clock, `the post-upload-hook ${command}`, call, (guarded) =>
    hook({ command, provider, externalId, file: plan.file.path, signal: guarded.signal, log }),
  );
}

/** Records the failure. Never rejects: a record that cannot be written is later found as interrupted. */
async function fail(handle: UploadHandle, external: Partial<ImageUploadData>, log: Logger): Promise<void> {
  if (handle.lock.lost.aborted) return;
  try {
    await handle.release({ state: 'failed', progress: null, ...external });
  } catch (error) {
    log.warn('The record of a failed upload could not be written', { reason: reasonOf(error) });
  }
}
