import { WorkQueue, type WorkQueueOptions } from '@nodepool/core';
import type { CallOptions } from '@nodepool/zookeeper';

/** Interval of the search, in milliseconds; unreadable records cause no change event. */
const INTERVAL_MS = 60_000;

/** The only key of the queue: all records are checked together. */
const RECORDS = 'records';

/** Deletes empty records of one kind at intervals. Other unreadable records are left to an operator. */
export class EmptyRecordRounds {
  private readonly queue: WorkQueue<typeof RECORDS>;

  constructor(
    context: Pick<WorkQueueOptions<string>, 'clock' | 'random' | 'tasks' | 'log'>,
    name: string,
    remove: (options: CallOptions) => Promise<void>,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: () => name,
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: async (_records, { signal }) => {
        await remove({ signal });
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
    this.queue.add(RECORDS, INTERVAL_MS);
  }

  stop(reason = new Error('the program is stopped')): void {
    this.queue.abort(reason);
  }
}
