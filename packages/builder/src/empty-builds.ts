/**
 * Deletes empty records of builds that two consecutive searches found unchanged. A contender for a lock below a build
 * that is deleted meanwhile leaves such a record behind, and builders of the Python Nodepool do not clean up an image
 * with an empty record. The store reports other unreadable records, which an operator has to repair.
 */

import { WorkQueue } from '@nodepool/core';
import type { EmptyBuild } from '@nodepool/store';
import type { BuilderContext } from './context.js';
import type { Controller } from './controller.js';

/** Interval (ms) of the search; unreadable records cause no change event. */
const INTERVAL_MS = 60_000;

/** The only key of the queue: all records are checked together. */
const RECORDS = 'records';

export class EmptyBuilds implements Controller {
  private readonly queue: WorkQueue<typeof RECORDS>;
  private seen: ReadonlyMap<string, EmptyBuild> = new Map();

  constructor(private readonly context: BuilderContext) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'remove empty records of builds',
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: async (_records, { signal }) => {
        await this.look(signal);
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
    this.queue.add(RECORDS, INTERVAL_MS);
  }

  stop(reason: Error): void {
    this.queue.abort(reason);
  }

  private async look(signal: AbortSignal): Promise<void> {
    const { store, log } = this.context;
    const found = new Map<string, EmptyBuild>();
    for (const { path } of store.complete ? [...store.images.corrupt()] : []) {
      const build = await store.images.readEmptyBuild(path, { signal });
      if (build === undefined) continue;
      const before = this.seen.get(path);
      if (before?.created !== build.created || before.version !== build.version) found.set(path, build);
      else if (await store.images.removeEmptyBuild(build, { signal })) log.info('Removed an empty record', { path });
    }
    this.seen = found;
  }
}
