/** Deletes a record whose lock this process holds, and the lock with it. */

import { isZooKeeperError, type CallOptions, type TransactionOp } from '@nodepool/zookeeper';
import { askUntilLost, isStale, throwIfLost } from './commit.js';
import type { StoreContext } from '../context.js';
import { LostOwnershipError } from '../errors.js';
import type { AnyRecordHandle } from './record-handle.js';

/**
 * Deletes the record, its lock directory and the descendants in `below` (children first) in one transaction. Returns
 * false, changing nothing, if its children changed meanwhile, e.g. by a new contender.
 */
export async function removeRecord(
  { zooKeeper, caches }: StoreContext,
  record: AnyRecordHandle,
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
      const isSessionLost = isZooKeeperError(error, 'session-lost') && !lock.persistent;
      if (isStale(error) || isSessionLost) throw new LostOwnershipError(path, error);
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

/** Returns true if the failed operation was one on these paths. */
function isAbout(error: unknown, ops: readonly TransactionOp[], paths: readonly string[]): boolean {
  const index = isZooKeeperError(error, 'no-node') ? error.operationIndex : undefined;
  const path = index === undefined ? undefined : ops[index]?.path;
  return path !== undefined && paths.includes(path);
}
