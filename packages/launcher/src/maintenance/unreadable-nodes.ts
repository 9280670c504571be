/**
 * Empty node records: who waits for the lock of a node that is removed meanwhile leaves one behind, for locks are made
 * with their parents. They are removed when nobody has held them for a while. Other records that cannot be read are left
 * to people; the store says which they are, and why.
 */

import { nodeLockPath } from '@nodepool/store';
import { WorkQueue } from '@nodepool/core';
import { isZooKeeperError, type TransactionOp } from '@nodepool/zookeeper';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Unreadable records are no news to anybody; so it is looked for them once in a while. */
const INTERVAL_MS = 60_000;

/** An empty record, as it was when it was looked at. */
interface EmptyRecord {
  readonly version: number;
  /** Of the creation: another record of the same name is another record. */
  readonly czxid: bigint;
}

/** The only key: all records are looked at together. */
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

  /** Undefined when it is gone, or not empty. */
  private async readEmpty(path: string, signal: AbortSignal): Promise<EmptyRecord | undefined> {
    try {
      const { data, stat } = await this.context.store.zooKeeper.get(path, { signal });
      return data.length > 0 ? undefined : { version: stat.version, czxid: stat.czxid };
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /** Nothing is removed from below anybody: a lock that is contended for is not empty, so that its removal fails. */
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
      // It is gone, or in use again.
    }
  }
}
