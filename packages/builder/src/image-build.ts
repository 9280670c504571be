/** One build of one image, from the acquired lock to the record of its outcome. */

import { linkSignals, reasonOf, type ImageBuildData, type Logger, type DiskImageConfig } from '@nodepool/core';
import type { BuildHandle, BuildingLock } from '@nodepool/store';
import { failAbandonedBuilds } from './abandoned-records.js';
import { failureReason, recordFailedBuild } from './build-failure.js';
import { readyBuilds } from './build-plan.js';
import { BUILD_DURATION, BUILD_EXIT_CODE, FAILED_BUILDS, IMAGE_SIZE, LAST_BUILD } from './builder-metrics.js';
import { unixSeconds, type BuilderContext } from './context.js';
import { dibCommand } from './dib-command.js';
import { BuildFailedError } from './disk-image-creator.js';
import type { DiskImageFile } from './disk-image-files.js';
import { cleanUpLeftovers } from './leftovers.js';

/** Minimum of free bytes to start a build. */
const MIN_FREE_BYTES = 256 * 2 ** 20;
/** Largest expected growth of an image, as a factor of the previous one. */
const GROWTH = 1.2;

/** Recorded exit status of a build that timed out or did not create its images. */
const FAILED_EXIT_CODE = 1;

export interface BuildPlan {
  readonly image: DiskImageConfig;
  /** Formats to build, sorted. */
  readonly formats: readonly string[];
  readonly elementsDir: string | undefined;
}

/**
 * Builds the image and calls `onBuild` with the build's id. Rejects with the cause of a failure after it is recorded
 * and the files are deleted; if the lock is lost, nothing is written any more. `stop` aborts the build.
 */
export async function buildImage(
  context: BuilderContext,
  lock: BuildingLock,
  plan: BuildPlan,
  stop: AbortSignal,
  onBuild: (id: string) => void,
): Promise<void> {
  const { name } = plan.image;
  await failAbandonedBuilds(context, name, stop);
  try {
    await cleanUpLeftovers(context);
    await checkFreeSpace(context, name);
  } catch (error) {
    await recordFailedBuild(context, lock, { image: name, build: undefined, error });
    throw error;
  }
  const requestedAt = context.store.images.buildRequestedAt(name);
  const handle = await lock.create(newBuild(context, plan), { id: context.random.uuidHex(), signal: stop });
  const { build } = handle;
  onBuild(build.id);
  const log = context.log.with({ image: build.image, build_id: build.id });
  const linked = linkSignals(stop, lock.lock.lost);
  try {
    const { files, source } = await runBuild(context, plan, build.id, log, linked.signal);
    const tested = await runBootTest(context, plan.image, build.id, files, log, linked.signal);
    await becomeReady(context, handle, plan.image, requestedAt, {
      ...(tested ? { boot_tested: true } : {}),
      ...(source === undefined ? {} : { source }),
    });
    log.info('The image is built', { files: files.map(({ path, bytes }) => ({ path, bytes })) });
  } catch (error) {
    await fail(context, handle, error, log);
    throw error;
  } finally {
    linked.unlink();
  }
}

/** Rejects with `BuildFailedError` if the disk lacks space for another build. */
async function checkFreeSpace({ files, store }: BuilderContext, image: string): Promise<void> {
  const [last] = readyBuilds(store.images, image);
  const lastBytes = last === undefined ? 0 : await files.usedBytes(last);
  const needed = Math.max(MIN_FREE_BYTES, Math.ceil(lastBytes * GROWTH));
  const free = await files.freeBytes();
  if (free >= needed) return;
  throw new BuildFailedError(
    'space',
    `images-dir has ${mebibytes(free)} free, and a build of ${image} needs about ${mebibytes(needed)}: ` +
      'free space there, delete builds (nodepool dib-image-delete), or use delete-after-upload',
  );
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

function newBuild(context: BuilderContext, { formats }: BuildPlan): ImageBuildData {
  return {
    state: 'building',
    state_time: unixSeconds(context),
    builder: context.fqdn,
    builder_id: context.builderId,
    formats,
    username: null,
    python_path: null,
    shell_type: null,
  };
}

async function runBuild(
  context: BuilderContext,
  { image, formats, elementsDir }: BuildPlan,
  build: string,
  log: Logger,
  signal: AbortSignal,
): Promise<{ readonly files: readonly DiskImageFile[]; readonly source: string | undefined }> {
  const { creator, files, clock, metrics, sources } = context;
  const ref = { image: image.name, id: build };
  const output = files.basePath(ref);
  const startedAt = clock.monotonic();
  let exitCode = FAILED_EXIT_CODE;
  try {
    const limits = { timeoutMs: image.buildTimeoutMs, signal, log };
    let source: string | undefined;
    if (image.source === undefined) {
      await creator.create({ ...ref, build, ...dibCommand({ image, formats, elementsDir, output }), ...limits });
    } else source = await sources.fetch({ build: ref, source: image.source, formats, output, ...limits });
    const made = await files.complete(ref, formats, signal);
    for (const { format, usedBytes } of made) metrics.set(IMAGE_SIZE, { image: image.name, format }, usedBytes);
    exitCode = 0;
    return { files: made, source };
  } catch (error) {
    if (error instanceof BuildFailedError) exitCode = error.exitCode ?? FAILED_EXIT_CODE;
    throw error;
  } finally {
    metrics.observe(BUILD_DURATION, { image: image.name }, clock.monotonic() - startedAt);
    metrics.set(BUILD_EXIT_CODE, { image: image.name }, exitCode);
    metrics.set(LAST_BUILD, { image: image.name }, Math.floor(unixSeconds(context)));
  }
}

/** Resolves with true if the build has passed a test, with false if none is configured. */
async function runBootTest(
  { bootTester }: BuilderContext,
  { name, bootTest: config, username }: DiskImageConfig,
  id: string,
  files: readonly DiskImageFile[],
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  if (config === undefined) return false;
  await bootTester.test({ build: { image: name, id }, files, config, username, signal, log });
  return true;
}

async function becomeReady(
  context: BuilderContext,
  handle: BuildHandle,
  { name, username, pythonPath, shellType }: DiskImageConfig,
  requestedAt: number | undefined,
  facts: Pick<ImageBuildData, 'boot_tested' | 'source'>,
): Promise<void> {
  // A request that came during the build is for the next build. Its time is ZooKeeper's and identifies it; the
  // builder's clock may differ.
  const fulfilsRequest = requestedAt !== undefined && requestedAt === context.store.images.buildRequestedAt(name);
  await handle.release(
    { state: 'ready', username, python_path: pythonPath, shell_type: shellType ?? null, ...facts },
    { fulfilsRequest },
  );
}

/** Records the failure. Never rejects: cleanup finds a record without a lock and finishes the work. */
async function fail(context: BuilderContext, handle: BuildHandle, error: unknown, log: Logger): Promise<void> {
  const { image, id } = handle.build;
  context.metrics.count(FAILED_BUILDS, { image, reason: failureReason(error) });
  try {
    await context.files.remove(handle.build);
  } catch (failure) {
    log.warn('Files of a failed build could not be removed; retrying', { reason: reasonOf(failure) });
  }
  if (handle.lock.lost.aborted) return;
  await recordFailedBuild(context, handle, { image, build: id, error });
  try {
    await handle.release({ state: 'failed' });
  } catch (failure) {
    log.warn('The record of a failed build could not be written', { reason: reasonOf(failure) });
  }
}
