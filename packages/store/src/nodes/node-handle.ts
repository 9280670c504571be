/** A node whose lock this process holds. */

import type { CallOptions, HeldLock } from '@nodepool/zookeeper';
import type { Node, NodeData } from '@nodepool/core';
import { commit } from '../commit/commit.js';
import { now, type StoreContext } from '../context.js';
import { inTurn, type RecordHandle, type Step } from '../commit/record-handle.js';
import { removeRecord } from '../commit/remove-record.js';
import { adoptInterruption } from './interruption.js';

/** A node whose lock this process holds. */
export class NodeHandle {
  constructor(
    private readonly context: StoreContext,
    readonly id: string,
    readonly record: RecordHandle<NodeData>,
  ) {}

  /** The node as last read or written under the lock. */
  get node(): Node {
    return this.record.source.value;
  }

  get lock(): HeldLock {
    return this.record.lock;
  }

  /**
   * Writes the change, versioned and fenced, and sets `state_time` if `state` changes. Writes of one handle keep their
   * order. An interruption that a launcher has written meanwhile is preserved.
   */
  update(change: Partial<NodeData>, options?: CallOptions): Promise<void> {
    return this.commit(() => this.record.change(change, now(this.context), false), options);
  }

  /**
   * Releases the lock, with a last change in the same transaction. Rejects if the change could not be written; the lock
   * is released even then.
   */
  async release(change?: Partial<NodeData>, options?: CallOptions): Promise<void> {
    try {
      await this.commit(
        () => (change === undefined ? this.record.release() : this.record.change(change, now(this.context), true)),
        options,
      );
    } finally {
      void this.lock.release();
    }
  }

  /**
   * Releases the lock with a last change in the same transaction. Rejects if it could not be written; unlike after
   * `release`, the lock is then still held, unless it was lost (`LostOwnershipError`).
   */
  unlock(change: Partial<NodeData>, options?: CallOptions): Promise<void> {
    return this.commit(() => this.record.change(change, now(this.context), true), options);
  }

  /**
   * Deletes the record and its lock in one transaction. If the lock has other contenders or foreign znodes exist below
   * the record, sets its state to `deleted`, unlocks it and resolves with false; the next process that tries deletes
   * it.
   */
  async remove(options?: CallOptions): Promise<boolean> {
    const removed = await inTurn([this.record], () => removeRecord(this.context, this.record, options));
    if (!removed) await this.release({ state: 'deleted' }, options);
    return removed;
  }

  /** Computes the step when its turn comes, because it depends on the writes before it. */
  private commit(step: () => Step, options?: CallOptions): Promise<void> {
    const { zooKeeper, caches } = this.context;
    return inTurn([this.record], async () => {
      for (;;) {
        const planned = step();
        try {
          await commit(zooKeeper, caches, [planned], options);
          return;
        } catch (error) {
          const written = typeof planned.write === 'string' ? undefined : planned.write.data;
          if (!(await adoptInterruption(this.context, this.record, written, error, options))) throw error;
        }
      }
    });
  }
}
