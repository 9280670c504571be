/** Acquires locks of nodes, each in one transaction with its preconditions and changes. */

import {
  isZooKeeperError,
  type CallOptions,
  lockHolder,
  type AdoptOptions,
  type HeldLock,
  type LockHolder,
  type LockOptions,
  type TransactionOp,
  type TransactionResult,
} from '@nodepool/zookeeper';
import type { NodeData } from '@nodepool/core';
import { type NodeEntry, readNode, type NodeTable } from './node-entry.js';
import { NodeHandle } from './node-handle.js';
import { claimOf, claimPlan, writtenBy, type NodeClaim } from '../commit/claim.js';
import { nodeCodec } from '../codec/node.js';
import { isStale } from '../commit/commit.js';
import { now, type StoreContext } from '../context.js';
import { CorruptRecordError, LostOwnershipError } from '../errors.js';
import { RecordHandle, stamped } from '../commit/record-handle.js';
import { nodeLockPath, nodePath } from '../paths.js';
import { isCorrupt } from '../tables/record-table.js';
import { settleEvents } from '../tables/settle-events.js';

/** A node to lock, with the change to apply. */
export interface Target {
  readonly id: string;
  readonly change?: Partial<NodeData> | undefined;
  readonly from?: NodeEntry | undefined;
}

/** Locks that survive the session and the process, see `TryLockOptions.owner`. */
export interface DurableLockOptions extends LockOptions, CallOptions {
  /** Name of the owner, which later processes use to adopt the locks. */
  readonly owner: string;
  /** Further operations of the transaction. If one fails, the call rejects with its error, and nothing is changed. */
  readonly after?: readonly TransactionOp[];
}

export class NodeLocks {
  constructor(
    private readonly context: StoreContext,
    private readonly table: NodeTable,
  ) {}

  async tryLockAll(
    nodes: readonly Target[],
    options?: CallOptions | DurableLockOptions,
  ): Promise<readonly NodeHandle[] | undefined> {
    if (nodes.length === 0) return [];
    await settleEvents();
    const claims: NodeClaim[] = [];
    for (const target of nodes) {
      const claim = this.claim(target) ?? (await this.claimUncached(target, options));
      if (claim === undefined) return undefined;
      claims.push(claim);
    }
    const { caches, locks } = this.context;
    const plan = claimPlan(caches, claims);
    const expectation = caches.expect(plan.paths);
    try {
      // The checks come first: if a node was deleted, the transaction fails before the creation of its lock would
      // create the node again.
      const held = await locks.tryAcquireAll(plan.locks, { before: plan.ops, ...options });
      if (held === undefined) {
        expectation.unknown();
        return undefined;
      }
      expectation.applied(writtenBy(claims, held.before));
      return this.handles(claims, held.locks, held.before);
    } catch (error) {
      expectation.unknown();
      if (isStale(error) && !isAfter(error, claims.length)) return undefined;
      throw error;
    }
  }

  /** Implements `NodeStore.adopt`. */
  async adopt(id: string, owner: string, options?: AdoptOptions & CallOptions): Promise<NodeHandle | undefined> {
    const { locks, zooKeeper } = this.context;
    const lock = await locks.adopt(nodeLockPath(id), owner, options);
    if (lock === undefined) return undefined;
    try {
      const record = this.table.decode(id, await zooKeeper.get(nodePath(id), options), true);
      if (isCorrupt(record)) throw new CorruptRecordError(record.path, record.reason);
      return this.handleOf(record, lock);
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /** Implements `NodeStore.holder`. */
  holder(id: string, options?: CallOptions): Promise<LockHolder | undefined> {
    return lockHolder(this.context.zooKeeper, nodeLockPath(id), options);
  }

  async lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle> {
    const path = nodePath(id);
    // Locking a missing node would create it.
    if ((await readNode(this.context, this.table, id, options)) === undefined) throw new LostOwnershipError(path);
    try {
      const lock = await this.context.locks.acquire(nodeLockPath(id), options);
      return await this.readLocked(id, lock, options);
    } catch (error) {
      throw isZooKeeperError(error, 'no-node') ? new LostOwnershipError(path, error) : error;
    }
  }

  /** Returns the write that locks a node with a change, from its cached state; undefined if the node is not free. */
  claim({ id, change, from }: Target): NodeClaim | undefined {
    const known = from ?? this.table.entries.get(id);
    const record = known === undefined ? undefined : this.table.lockable(known);
    return record === undefined ? undefined : this.claimOf(record, change);
  }

  /** Returns handles of nodes whose locks were acquired with `claims`. */
  handles(
    claims: readonly NodeClaim[],
    locks: readonly HeldLock[],
    results: readonly TransactionResult[],
  ): readonly NodeHandle[] {
    const handles: NodeHandle[] = [];
    claims.forEach((claim, index) => {
      const lock = locks[index];
      const result = results[index];
      if (lock === undefined) return;
      const version = result?.type === 'set' ? result.stat.version : claim.version;
      const record = new RecordHandle(claim.path, lock, nodeCodec, claim.source, version);
      handles.push(new NodeHandle(this.context, claim.id, record));
    });
    return handles;
  }

  /** Reads a node after waiting for its lock; releases the lock if there is no node. */
  private async readLocked(id: string, lock: HeldLock, options?: CallOptions): Promise<NodeHandle> {
    const path = nodePath(id);
    const { zooKeeper } = this.context;
    let vanished = false;
    try {
      const { data, stat } = await zooKeeper.get(path, options);
      // The node was deleted during the wait, and creating its lock has created an empty one.
      vanished = data.length === 0 && stat.version === 0;
      if (vanished) throw new LostOwnershipError(path);
      const record = this.table.decode(id, { data, stat }, true);
      if (isCorrupt(record)) throw new CorruptRecordError(record.path, record.reason);
      return this.handleOf(record, lock);
    } catch (error) {
      await lock.release();
      if (vanished) await this.removeEmpty(id);
      throw error;
    }
  }

  /** Returns a handle that writes to the record in the version of `entry`. */
  handleOf({ id, source, version }: NodeEntry, lock: HeldLock): NodeHandle {
    return new NodeHandle(this.context, id, new RecordHandle(nodePath(id), lock, nodeCodec, source, version));
  }

  /** Deletes an empty node created by accident, unless another process already uses it. */
  private async removeEmpty(id: string): Promise<void> {
    try {
      await this.context.zooKeeper.transaction([
        { type: 'delete', path: nodeLockPath(id) },
        { type: 'delete', path: nodePath(id), version: 0 },
      ]);
    } catch (error) {
      this.context.log.warn('An empty node could not be removed', { node_id: id, error });
    }
  }

  private claimOf(record: NodeEntry, change: Partial<NodeData> | undefined): NodeClaim {
    const { id, node, source } = record;
    const next = change === undefined ? source : nodeCodec.change(source, stamped(node, change, now(this.context)));
    return claimOf(record, next, nodePath(id), nodeLockPath(id));
  }

  /** Returns the claim of a record that is not in the cache (yet), or whose last change is not. */
  private async claimUncached(target: Target, options?: CallOptions): Promise<NodeClaim | undefined> {
    if (target.from !== undefined || (this.table.has(target.id) && !this.table.isUnlocking(target.id)))
      return undefined;
    const record = await readNode(this.context, this.table, target.id, options);
    return record === undefined || record.locked ? undefined : this.claimOf(record, target.change);
  }
}

/** Returns true if the failed operation is one of those after the claims. */
function isAfter(error: unknown, claims: number): boolean {
  const index = isZooKeeperError(error) ? error.operationIndex : undefined;
  return index !== undefined && index >= claims;
}
