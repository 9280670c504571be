/** A node whose lock we hold. */

import { isZooKeeperError, type CallOptions, type HeldLock, type TransactionOp } from '@nodepool/zookeeper';
import type { Node, NodeData } from '../model/node.js';
import type { NodeHandle } from './api.js';
import { askUntilLost, commit, isStale, throwIfLost } from './commit.js';
import { now, type StoreContext } from './context.js';
import { LostOwnershipError } from './errors.js';
import { inTurn, type OwnedRecord, type Step } from './owned-record.js';

export class OwnedNode implements NodeHandle {
  constructor(
    private readonly context: StoreContext,
    readonly id: string,
    readonly record: OwnedRecord<NodeData>,
  ) {}

  get node(): Node {
    return this.record.source.value;
  }

  get lock(): HeldLock {
    return this.record.lock;
  }

  update(change: Partial<NodeData>, options?: CallOptions): Promise<void> {
    return this.commit(() => this.record.change(change, now(this.context), false), options);
  }

  release(change?: Partial<NodeData>, options?: CallOptions): Promise<void> {
    return this.commit(
      () => (change === undefined ? this.record.release() : this.record.change(change, now(this.context), true)),
      options,
    );
  }

  async remove(options?: CallOptions): Promise<void> {
    const removed = await inTurn([this.record], () => this.removeUncontended(options));
    if (!removed) await this.release({ state: 'deleted' }, options);
  }

  /** The step is made when its turn comes: it depends on what the writes before it did. */
  private commit(step: () => Step, options?: CallOptions): Promise<void> {
    const { zooKeeper, caches } = this.context;
    return inTurn([this.record], () => commit(zooKeeper, caches, [step()], options));
  }

  /** False: somebody else contends for the lock, and nothing was done. */
  private async removeUncontended(options?: CallOptions): Promise<boolean> {
    const { zooKeeper, caches } = this.context;
    const { path, lock, version } = this.record;
    const ops: TransactionOp[] = [
      lock.releaseOp,
      { type: 'delete', path: lock.path },
      { type: 'delete', path, version },
    ];
    for (;;) {
      throwIfLost(this.record);
      const expectation = caches.expect([path]);
      try {
        await zooKeeper.transaction(ops, options);
        lock.released();
        expectation.applied([{ path, node: undefined }]);
        return true;
      } catch (error) {
        expectation.unknown();
        if (isZooKeeperError(error, 'not-empty')) return false;
        if (isStale(error) || isZooKeeperError(error, 'session-lost')) throw new LostOwnershipError(path, error);
        if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
        if (await this.isGone(error)) {
          lock.released();
          return true;
        }
        options?.signal?.throwIfAborted();
      }
    }
  }

  /** Whether a removal was applied whose answer was lost. */
  private isGone(cause: unknown): Promise<boolean> {
    const { zooKeeper } = this.context;
    const { path } = this.record;
    return askUntilLost(this.record, cause, async (signal) => {
      await zooKeeper.sync(path, { signal });
      return (await zooKeeper.exists(path, { signal })) === undefined;
    });
  }
}
