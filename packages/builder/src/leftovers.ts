/**
 * Cleans up after builds whose builder was killed: processes, mounts and temporary files. It searches at the start, at
 * intervals, and before each build, which needs the space.
 */

import { WorkQueue } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import type { BuilderContext } from './context.js';
import type { Controller } from './controller.js';
import { BuildFailedError } from './disk-image-creator.js';

/** Interval (ms) between searches, and the shorter one while leftovers remain. */
const INTERVAL_MS = 600_000;
const RETRY_MS = 60_000;

/** The only key of the queue. */
const MACHINE = 'machine';

export class Leftovers implements Controller {
  private readonly queue: WorkQueue<typeof MACHINE>;

  constructor(context: BuilderContext) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'clean up after killed builds',
      backOff: { firstMs: RETRY_MS, longestMs: INTERVAL_MS },
      reconcile: async () => {
        if (!context.store.complete) return { requeueAfterMs: RETRY_MS };
        const remaining = await cleanUpLeftovers(context);
        return { requeueAfterMs: remaining > 0 ? RETRY_MS : INTERVAL_MS };
      },
      onFailure: (_machine, error, retry) => {
        if (retry === undefined) return;
        const fields = { error, seconds: retry.waitMs / 1000 };
        context.log.warn('The clean-up after killed builds failed; retrying', fields);
      },
    });
  }

  /** Called when all records are known. */
  addAll(): void {
    this.queue.add(MACHINE);
  }

  stop(reason: Error): void {
    this.queue.abort(reason);
  }
}

/**
 * Resolves with the number of builds whose leftovers remain. Rejects with `BuildFailedError` if processes of a build
 * cannot be ended, since the next build would compete with them.
 */
export async function cleanUpLeftovers(context: BuilderContext): Promise<number> {
  const { creator, log } = context;
  let remaining = 0;
  let failure: BuildFailedError | undefined;
  for (const build of await creator.leftovers()) {
    const fields = { image: build.image, build_id: build.id };
    if (isBuiltByAnother(context, build)) {
      remaining += 1;
      continue;
    }
    try {
      await creator.cleanUp(build, log.with(fields));
      log.info('Removed the temporary files of a build that was killed', fields);
    } catch (error) {
      remaining += 1;
      if (error instanceof BuildFailedError) failure = error;
      else log.warn('Leftovers of a build cannot be removed; retrying', { ...fields, error });
    }
  }
  if (failure !== undefined) throw failure;
  return remaining;
}

/** Returns true if a builder with a ZooKeeper session runs the build, e.g. in another container with the same disk. */
function isBuiltByAnother({ store: { images } }: BuilderContext, build: BuildRef): boolean {
  return images.build(build)?.state === 'building' && images.isBuilding(build.image);
}
