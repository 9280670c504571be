/** A node whose lock this process holds. */

import type { CallOptions, HeldLock } from '@nodepool/zookeeper';
import type { Node, NodeData } from '@nodepool/core';
import type { NodeHandle } from './api.js';
import { commit } from './commit.js';
import { now, type StoreContext } from './context.js';
import { inTurn, type OwnedRecord, type Step } from './owned-record.js';
import { removeRecord } from './remove-record.js';

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

  async remove(options?: CallOptions): Promise<boolean> {
    const removed = await inTurn([this.record], () => removeRecord(this.context, this.record, options));
    if (!removed) await this.release({ state: 'deleted' }, options);
    return removed;
  }

  /** Computes the step when its turn comes, because it depends on the writes before it. */
  private commit(step: () => Step, options?: CallOptions): Promise<void> {
    const { zooKeeper, caches } = this.context;
    return inTurn([this.record], async () => commit(zooKeeper, caches, [step()], options));
  }
}
