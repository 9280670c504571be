/** Deletes empty node records. The store reports other unreadable records, which an operator has to repair. */

import { WorkQueue } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Interval of the search, in milliseconds; unreadable records cause no change event. */
const INTERVAL_MS = 60_000;

/** The only key of the queue: all records are checked together. */
const RECORDS = 'records';

export class EmptyNodes implements Controller {
  private readonly queue: WorkQueue<typeof RECORDS>;

  constructor(context: LauncherContext) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'remove empty node records',
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: async (_records, { signal }) => {
        await context.store.nodes.removeEmpty({ signal });
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
    this.queue.add(RECORDS, INTERVAL_MS);
  }

  stop(): void {
    this.queue.abort(new Error('the launcher is stopped'));
  }
}
