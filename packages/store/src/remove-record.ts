/** Removes a record whose lock we hold, and the lock with it. */

import { isZooKeeperError, type CallOptions, type TransactionOp } from '@nodepool/zookeeper';
import { askUntilLost, isStale, throwIfLost } from './commit.js';
import type { StoreContext } from './context.js';
import { LostOwnershipError } from './errors.js';
import type { Owned } from './owned-record.js';

/**
 * The record, whose lock directory is below it, in one transaction; with `below`, other znodes below it, children first.
 * False: what is below it has changed (somebody contends for the lock, say), and nothing was done.
 */
export async function removeRecord(
  { zooKeeper, caches }: StoreContext,
  record: Owned,
  options?: CallOptions,
  below: readonly string[] = [],
): Promise<boolean> {
  const { path, lock, version } = record;
  const ops: TransactionOp[] = [
    lock.releaseOp,
    { type: 'delete', path: lock.path },
    ...below.map((child) => ({ type: 'delete' as const, path: child })),
    { type: 'delete', path, version },
  ];
  for (;;) {
    throwIfLost(record);
    const expectation = caches.expect([path]);
    try {
      await zooKeeper.transaction(ops, options);
      lock.released();
      expectation.applied([{ path, node: undefined }]);
      return true;
    } catch (error) {
      expectation.unknown();
      if (isZooKeeperError(error, 'not-empty') || isAbout(error, ops, below)) return false;
      if (isStale(error) || isZooKeeperError(error, 'session-lost')) throw new LostOwnershipError(path, error);
      if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
      const gone = await askUntilLost(record, error, async (signal) => {
        await zooKeeper.sync(path, { signal });
        return (await zooKeeper.exists(path, { signal })) === undefined;
      });
      if (gone) {
        lock.released();
        return true;
      }
      options?.signal?.throwIfAborted();
    }
  }
}

/** Whether it was the operation on one of these paths that failed. */
function isAbout(error: unknown, ops: readonly TransactionOp[], paths: readonly string[]): boolean {
  const index = isZooKeeperError(error, 'no-node') ? error.operationIndex : undefined;
  const path = index === undefined ? undefined : ops[index]?.path;
  return path !== undefined && paths.includes(path);
}
