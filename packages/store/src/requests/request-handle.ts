import { isZooKeeperError, type CallOptions, type HeldLock, type TransactionOp } from '@nodepool/zookeeper';
import type { NodeData, NodeRequest, NodeRequestData } from '@nodepool/core';
import type { NodeHandle } from '../nodes/node-handle.js';
import { commit } from '../commit/commit.js';
import { now, type StoreContext } from '../context.js';
import { LostOwnershipError, RequestGoneError } from '../errors.js';
import { nodePath } from '../paths.js';
import { inTurn, type RecordHandle, type Step } from '../commit/record-handle.js';

interface NodeChange {
  readonly handle: NodeHandle;
  readonly change?: Partial<NodeData>;
}

/** A request whose lock this process holds. */
export class RequestHandle {
  constructor(
    private readonly context: StoreContext,
    readonly id: string,
    private readonly record: RecordHandle<NodeRequestData>,
  ) {}

  get request(): NodeRequest {
    return this.record.source.value;
  }

  get lock(): HeldLock {
    return this.record.lock;
  }

  /**
   * Reverts an acceptance in one transaction: deletes the records of nodes that have not been started, in these
   * versions, sets the request to `requested` and unlocks it. Rejects with `RequestGoneError` if the requestor deleted
   * the request; the lock is released even then.
   */
  async undo(
    nodes: readonly { readonly id: string; readonly version: number }[],
    options?: CallOptions,
  ): Promise<void> {
    const removals = nodes.map(({ id, version }) => ({ type: 'delete' as const, path: nodePath(id), version }));
    const unlocked = (time: number): Step => this.record.change({ state: 'requested' }, time, true);
    try {
      await this.commit([], unlocked, () => ({}), options, removals);
    } finally {
      void this.lock.release();
    }
  }

  /**
   * Fulfils the request in one transaction: every node gets its change, state `ready` and is unlocked; the request
   * becomes `fulfilled` with `nodes` in this order and is unlocked. Launchers lock no fulfilled request, so the
   * directory of its lock is deleted, too, unless another program contends for it. Rejects with `RequestGoneError` if
   * the requestor deleted the request.
   */
  async fulfil(nodes: readonly NodeChange[], options?: CallOptions): Promise<void> {
    const change = { state: 'fulfilled', nodes: nodes.map(({ handle }) => handle.id) } as const;
    const fulfilled = (directory: readonly TransactionOp[]): Promise<void> =>
      this.commit(
        nodes,
        (time) => this.record.change(change, time, true),
        ({ change: last }) => ({ ...last, state: 'ready' }),
        options,
        directory,
      );
    try {
      await fulfilled([{ type: 'delete', path: this.lock.path }]);
    } catch (error) {
      if (!isZooKeeperError(error, 'not-empty')) throw error;
      await fulfilled([]);
    }
  }

  /**
   * Unlocks the request with a change (declined, failed, or none). Nodes to keep for other requests are deallocated and
   * unlocked in the same transaction. Rejects if that could not be written, with `RequestGoneError` if the requestor
   * deleted the request; all locks are released even then.
   */
  async release(
    change: Partial<NodeRequestData>,
    deallocate: readonly NodeChange[] = [],
    options?: CallOptions,
  ): Promise<void> {
    const unchanged = Object.keys(change).length === 0;
    try {
      await this.commit(
        deallocate,
        (time) => (unchanged ? this.record.release() : this.record.change(change, time, true)),
        ({ change: last }) => ({ allocated_to: null, ...last }),
        options,
      );
    } finally {
      for (const { lock } of [this, ...deallocate.map(({ handle }) => handle)]) void lock.release();
    }
  }

  /** Commits one transaction over the request, which comes first, and nodes. All locks are released with it. */
  private commit(
    nodes: readonly NodeChange[],
    requestStep: (time: number) => Step,
    nodeChange: (node: NodeChange) => Partial<NodeData>,
    options?: CallOptions,
    further: readonly TransactionOp[] = [],
  ): Promise<void> {
    const { zooKeeper, caches } = this.context;
    const records = nodes.map(({ handle }) => handle.record);
    return inTurn([this.record, ...records], async () => {
      const time = now(this.context);
      const steps = [requestStep(time)];
      nodes.forEach((node, index) => {
        const step = records[index]?.change(nodeChange(node), time, true);
        if (step !== undefined) steps.push(step);
      });
      try {
        await commit(zooKeeper, caches, steps, options, further);
      } catch (error) {
        if (error instanceof LostOwnershipError && steps[0]?.write !== 'none' && isRequestGone(error.cause)) {
          throw new RequestGoneError(this.id, error);
        }
        throw error;
      }
    });
  }
}

/** Returns true if the request was deleted: its operation comes first, and found no znode. */
function isRequestGone(error: unknown): boolean {
  return isZooKeeperError(error, 'no-node') && error.operationIndex === 0;
}
