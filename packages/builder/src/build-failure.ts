/** The record of an image's last failed build, shown by `image-status` and `dib-image-list`. */

import { reasonOf, type ImageBuildFailure } from '@nodepool/core';
import type { BuildHandle, BuildingLock } from '@nodepool/store';
import { unixSeconds, type BuilderContext } from './context.js';
import { BuildFailedError } from './disk-image-creator.js';

/** Limit (characters) of a stored message. */
const MESSAGE_LENGTH = 2000;

type Recorder = Pick<BuildingLock | BuildHandle, 'recordFailure' | 'lock'>;
type Details = Pick<ImageBuildFailure, 'build' | 'builder' | 'reason' | 'message' | 'log'>;

/** Returns the label of a failure in metrics and records. */
export function failureReason(error: unknown): string {
  return error instanceof BuildFailedError ? error.failure : 'aborted';
}

/** Records that a build of this builder failed. `build` is undefined if it failed before it had one. Never rejects. */
export async function recordFailedBuild(
  context: BuilderContext,
  recorder: Recorder,
  { image, build, error }: { readonly image: string; readonly build: string | undefined; readonly error: unknown },
): Promise<void> {
  await record(context, recorder, image, {
    build: build ?? null,
    builder: context.fqdn,
    reason: failureReason(error),
    message: reasonOf(error).slice(0, MESSAGE_LENGTH),
    // A file of another program has no log.
    log:
      build === undefined || failureReason(error) === 'source' ? null : context.creator.logFile({ image, id: build }),
  });
}

/** Records that the builder of a build died. Only that builder knows the path of the log. Never rejects. */
export async function recordInterruptedBuild(context: BuilderContext, handle: BuildHandle): Promise<void> {
  const { image, id, builder, builder_id: builderId } = handle.build;
  await record(context, handle, image, {
    build: id,
    builder,
    reason: 'interrupted',
    message: 'the builder ended, or lost its ZooKeeper session, during the build',
    log: builderId === context.builderId ? context.creator.logFile({ image, id }) : null,
  });
}

async function record(context: BuilderContext, recorder: Recorder, image: string, details: Details): Promise<void> {
  if (recorder.lock.lost.aborted) return;
  try {
    await recorder.recordFailure({ time: unixSeconds(context), ...details });
  } catch (failure) {
    context.log.warn('Failed to record a failed build', { image, reason: reasonOf(failure) });
  }
}
