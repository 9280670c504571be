/**
 * Deletes empty records of builds; builders of the Python Nodepool do not clean up an image with an empty record. The
 * store reports other unreadable records, which an operator has to repair.
 */

import { WorkQueue } from '@nodepool/core';
import type { BuilderContext } from './context.js';
import type { Controller } from './controller.js';

/** Interval (ms) of the search; unreadable records cause no change event. */
const INTERVAL_MS = 60_000;

/** The only key of the queue: all records are checked together. */
const RECORDS = 'records';

export class EmptyBuilds implements Controller {
  private readonly queue: WorkQueue<typeof RECORDS>;

  constructor(context: BuilderContext) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'remove empty records of builds',
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: async (_records, { signal }) => {
        await context.store.images.removeEmptyBuilds({ signal });
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
    this.queue.add(RECORDS, INTERVAL_MS);
  }

  stop(reason: Error): void {
    this.queue.abort(reason);
  }
}
