/**
 * Deletes empty node records that two consecutive searches found unchanged. A contender for the lock of a node that is
 * deleted meanwhile leaves such a record behind, since lock nodes are created with their parents. The store reports
 * other unreadable records, which an operator has to repair.
 */

import { nodeLockPath } from '@nodepool/store';
import { WorkQueue } from '@nodepool/core';
import { isZooKeeperError, type TransactionOp } from '@nodepool/zookeeper';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Interval of the search, in milliseconds; unreadable records cause no change event. */
const INTERVAL_MS = 60_000;

/** The identity of an empty record at the time of a search. */
interface EmptyRecord {
  readonly version: number;
  /** Transaction id of the creation: distinguishes the record from a later one of the same name. */
  readonly czxid: bigint;
}

/** The only key of the queue: all records are checked together. */
const RECORDS = 'records';

export class UnreadableNodes implements Controller {
  private readonly queue: WorkQueue<typeof RECORDS>;
  private empty: ReadonlyMap<string, EmptyRecord> = new Map();

  constructor(private readonly context: LauncherContext) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'remove empty node records',
      backOff: { firstMs: INTERVAL_MS, longestMs: INTERVAL_MS },
      reconcile: async (_records, { signal }) => {
        await this.look(signal);
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
    this.queue.add(RECORDS, INTERVAL_MS);
  }

  stop(): void {
    this.queue.abort(new Error('the launcher is stopped'));
  }

  private async look(signal: AbortSignal): Promise<void> {
    const { store } = this.context;
    const found = new Map<string, EmptyRecord>();
    for (const { path } of store.complete ? [...store.nodes.corrupt()] : []) {
      const record = await this.readEmpty(path, signal);
      if (record === undefined) continue;
      const seen = this.empty.get(path);
      if (seen?.czxid === record.czxid && seen.version === record.version) await this.remove(path, record, signal);
      else found.set(path, record);
    }
    this.empty = found;
  }

  /** Resolves with undefined if the record does not exist or is not empty. */
  private async readEmpty(path: string, signal: AbortSignal): Promise<EmptyRecord | undefined> {
    try {
      const { data, stat } = await this.context.store.zooKeeper.get(path, { signal });
      return data.length > 0 ? undefined : { version: stat.version, czxid: stat.czxid };
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /**
   * Deletes the record and its lock directory. A lock with contenders is not empty, so the transaction fails and
   * changes nothing.
   */
  private async remove(path: string, { version }: EmptyRecord, signal: AbortSignal): Promise<void> {
    const { store, log } = this.context;
    const lock = nodeLockPath(path.slice(path.lastIndexOf('/') + 1));
    const hasLock = (await store.zooKeeper.exists(lock, { signal })) !== undefined;
    const ops: TransactionOp[] = [{ type: 'delete', path, version }];
    if (hasLock) ops.unshift({ type: 'delete', path: lock });
    try {
      await store.zooKeeper.transaction(ops, { signal });
      log.info('Removed an empty node record', { path });
    } catch (error) {
      const codes = ['no-node', 'not-empty', 'bad-version'] as const;
      if (!codes.some((code) => isZooKeeperError(error, code))) throw error;
      // The record has been deleted meanwhile, or is in use again.
    }
  }
}
