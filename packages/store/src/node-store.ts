/** Nodes: `/nodepool/nodes`. */

import {
  ensurePath,
  isContended as hasContender,
  isZooKeeperError,
  type CallOptions,
  type HeldLock,
  type LockOptions,
  type TransactionOp,
  type TransactionResult,
} from '@nodepool/zookeeper';
import { nodeCodec } from './codec/node.js';
import type { Source } from './codec/codec.js';
import type { Node, NodeData } from '@nodepool/core';
import { type CorruptRecord, CorruptRecordError, LostOwnershipError } from './errors.js';
import type { Change, NodeEntry, NodeHandle, NodeStore } from './api.js';
import type { Written } from './caches.js';
import { isStale } from './commit.js';
import { now, type StoreContext } from './context.js';
import { settleEvents } from './settle-events.js';
import { Index } from './indexes.js';
import { OwnedNode } from './node-handle.js';
import { claimOp, createOps, writtenBy, writtenPaths, type NodeClaim } from './node-claim.js';
import { OwnedRecord, stamped } from './owned-record.js';
import { NODES_ROOT, nameOf, nodeLockPath, nodePath, placeOfNode, supplyPath } from './paths.js';
import { RecordTable, isCorrupt } from './record-table.js';
import { statOfNew } from './stat-of-new.js';
import { checkTransactionSize } from './transaction-size.js';
import { znodesBelow } from './znodes-below.js';

/** A node to lock, with the change to apply. */
interface Target {
  readonly id: string;
  readonly change?: Partial<NodeData>;
  readonly from?: NodeEntry;
}

const NO_DATA = new Uint8Array();

class NodeRecord implements NodeEntry {
  readonly node: Node;

  constructor(
    readonly id: string,
    readonly source: Source<Node>,
    readonly version: number,
    readonly locked: boolean,
  ) {
    this.node = source.value;
  }
}

export class NodeRecords implements NodeStore {
  private readonly byState = new Index<NodeRecord>(({ node }) => [node.state]);
  private readonly byProvider = new Index<NodeRecord>(({ node }) => (node.provider === null ? [] : [node.provider]));
  private readonly byRequest = new Index<NodeRecord>(({ node }) =>
    node.allocated_to === null ? [] : [node.allocated_to],
  );
  private readonly byAvailability = new Index<NodeRecord>(availability);
  private readonly table: RecordTable<NodeData, NodeRecord>;

  constructor(private readonly context: StoreContext) {
    this.table = new RecordTable<NodeData, NodeRecord>({
      what: 'node',
      codec: nodeCodec,
      path: nodePath,
      entry: (source, version, locked) => new NodeRecord(source.value.id, source, version, locked),
      isEntry: (entry) => entry instanceof NodeRecord,
      indexes: [this.byState, this.byProvider, this.byRequest, this.byAvailability],
      log: context.log,
    });
    context.caches.add({
      root: NODES_ROOT,
      wantsData: (path) => placeOfNode(path)?.kind === 'record',
      isLeaf: (path) => placeOfNode(path)?.kind === 'contender',
      onPut: (znode, before) => {
        const place = placeOfNode(znode.path);
        if (place?.kind === 'record') this.table.put(place.id, znode);
        else if (before !== undefined) return;
        else if (place?.kind === 'contender') this.table.contenderAdded(place.id);
        else if (place?.kind === 'foreign') this.table.foreignAdded(place.id, znode.path);
      },
      onRemove: ({ path }) => {
        const place = placeOfNode(path);
        if (place?.kind === 'record') this.table.remove(place.id);
        else if (place?.kind === 'contender' || place?.kind === 'foreign') this.table.contenderRemoved(place.id);
      },
      pause: (path) => this.table.pause(nameOf(path)),
      resume: (path) => this.table.resume(nameOf(path)),
    });
  }

  get size(): number {
    return this.table.entries.size;
  }

  get(id: string): NodeEntry | undefined {
    return this.table.entries.get(id);
  }

  all(): Iterable<NodeEntry> {
    return this.table.all();
  }

  inState(state: Node['state']): Iterable<NodeEntry> {
    return this.byState.select(state, this.table.entries);
  }

  allocatedTo(requestId: string): readonly NodeEntry[] {
    return [...this.byRequest.select(requestId, this.table.entries)];
  }

  available(query: { readonly label: string; readonly provider: string; readonly pool: string }): Iterable<NodeEntry> {
    return this.byAvailability.select(availabilityKey(query.provider, query.pool, query.label), this.table.entries);
  }

  ofProvider(provider: string): Iterable<NodeEntry> {
    return this.byProvider.select(provider, this.table.entries);
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.table.corrupt();
  }

  onChange(listener: (change: Change<NodeEntry>) => void): () => void {
    return this.table.onChange(listener);
  }

  known(id: string): Promise<void> | undefined {
    return this.context.caches.pendingReads(NODES_ROOT, (path) => nameOf(path) <= id);
  }

  async read(id: string, options?: CallOptions): Promise<NodeEntry | undefined> {
    return this.readRecord(id, options);
  }

  async readIds(options?: CallOptions): Promise<readonly string[]> {
    const { children } = await this.context.zooKeeper.children(NODES_ROOT, options);
    return [...children].sort();
  }

  async foreignBelow(id: string, options?: CallOptions): Promise<readonly string[]> {
    const below = await znodesBelow(this.context.zooKeeper, nodePath(id), options);
    return below.filter((path) => {
      const kind = placeOfNode(path)?.kind;
      return kind !== 'lock' && kind !== 'contender';
    });
  }

  async create(nodes: readonly NodeData[], options?: CallOptions): Promise<readonly string[]> {
    if (nodes.length === 0) return [];
    const ops = createOps(nodes);
    checkTransactionSize(ops);
    return this.created(ops, await this.context.zooKeeper.transaction(ops, options));
  }

  async createOnce(
    provider: string,
    plan: () => readonly NodeData[],
    options?: CallOptions,
  ): Promise<readonly string[]> {
    const { zooKeeper, caches } = this.context;
    const path = supplyPath(provider);
    for (;;) {
      const version = await this.supplyVersion(path, options);
      // The cache then has the records of every transaction up to this version.
      do {
        if (!caches.complete) await caches.ready(options);
        await caches.pendingReads(NODES_ROOT, () => true);
      } while (!caches.complete);
      await settleEvents();
      const nodes = plan();
      if (nodes.length === 0) return [];
      const ops: TransactionOp[] = [{ type: 'set', path, data: NO_DATA, version }, ...createOps(nodes)];
      checkTransactionSize(ops);
      try {
        return this.created(ops, await zooKeeper.transaction(ops, options));
      } catch (error) {
        if (!isStale(error)) throw error;
      }
    }
  }

  /** Resolves with the version of the counter, which it creates if necessary. */
  private async supplyVersion(path: string, options?: CallOptions): Promise<number> {
    const { zooKeeper } = this.context;
    const stat = await zooKeeper.exists(path, options);
    if (stat !== undefined) return stat.version;
    await ensurePath(zooKeeper, path, options);
    return this.supplyVersion(path, options);
  }

  /** Returns the ids of records that a transaction created with `ops`, and adds them to the cache. */
  created(ops: readonly TransactionOp[], results: readonly TransactionResult[]): readonly string[] {
    const written: Written[] = [];
    results.forEach((result, index) => {
      const op = ops[index];
      if (result.type !== 'create' || op?.type !== 'create') return;
      const data = op.data ?? NO_DATA;
      const stat = result.stat ?? statOfNew(this.context, data);
      written.push({ path: result.path, node: { data, stat } });
    });
    this.context.caches.learn(written);
    return written.map(({ path }) => nameOf(path));
  }

  async tryLock(
    id: string,
    options?: { readonly change?: Partial<NodeData>; readonly from?: NodeEntry } & CallOptions,
  ): Promise<NodeHandle | undefined> {
    const handles = await this.tryLockAll([{ ...options, id }], options);
    return handles?.[0];
  }

  async tryLockAll(nodes: readonly Target[], options?: CallOptions): Promise<readonly NodeHandle[] | undefined> {
    if (nodes.length === 0) return [];
    await settleEvents();
    const claims: NodeClaim[] = [];
    for (const target of nodes) {
      const claim = this.claim(target) ?? (await this.claimUncached(target, options));
      if (claim === undefined) return undefined;
      claims.push(claim);
    }
    const ops = claims.map(claimOp);
    const paths = claims.map(({ id }) => nodeLockPath(id));
    checkTransactionSize(ops, paths);
    const { caches, locks } = this.context;
    const expectation = caches.expect(writtenPaths(claims));
    try {
      const held = await locks.tryAcquireAll(this.lockDirectories(paths), {
        ...options,
        // The checks come first: if a node was deleted, the transaction fails before the creation of its lock would
        // create the node again.
        before: ops,
      });
      if (held === undefined) {
        expectation.unknown();
        return undefined;
      }
      expectation.applied(writtenBy(claims, held.before));
      return this.handles(claims, held.locks, held.before);
    } catch (error) {
      expectation.unknown();
      if (isStale(error)) return undefined;
      throw error;
    }
  }

  async lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle> {
    const path = nodePath(id);
    // Locking a missing node would create it.
    if ((await this.readRecord(id, options)) === undefined) throw new LostOwnershipError(path);
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
  ): readonly OwnedNode[] {
    return claims.flatMap((claim, index) => {
      const lock = locks[index];
      const result = results[index];
      if (lock === undefined) return [];
      const version = result?.type === 'set' ? result.stat.version : claim.version;
      const record = new OwnedRecord(nodePath(claim.id), lock, nodeCodec, claim.source, version);
      return [new OwnedNode(this.context, claim.id, record)];
    });
  }

  /** Returns lock directories in the form of the lock recipe. */
  lockDirectories(paths: readonly string[]): { readonly path: string; readonly exists: boolean }[] {
    return paths.map((path) => ({ path, exists: this.context.caches.has(path) }));
  }

  /** Reads a node after waiting for its lock; releases the lock if there is no node. */
  private async readLocked(id: string, lock: HeldLock, options?: CallOptions): Promise<OwnedNode> {
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
      return new OwnedNode(this.context, id, new OwnedRecord(path, lock, nodeCodec, record.source, record.version));
    } catch (error) {
      await lock.release();
      if (vanished) await this.removeEmpty(id);
      throw error;
    }
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

  private claimOf(record: NodeRecord, change: Partial<NodeData> | undefined): NodeClaim {
    const { id, version } = record;
    if (change === undefined) return { id, version, source: record.source, data: undefined };
    const source = nodeCodec.change(record.source, stamped(record.node, change, now(this.context)));
    return { id, version, source, data: source === record.source ? undefined : source.data };
  }

  /** Returns the claim of a record that is not in the cache (yet). */
  private async claimUncached(target: Target, options?: CallOptions): Promise<NodeClaim | undefined> {
    if (target.from !== undefined || this.table.has(target.id)) return undefined;
    const record = await this.readRecord(target.id, options);
    return record === undefined || record.locked ? undefined : this.claimOf(record, target.change);
  }

  private async readRecord(id: string, options?: CallOptions): Promise<NodeRecord | undefined> {
    const { zooKeeper } = this.context;
    try {
      const [znode, contended] = await Promise.all([
        zooKeeper.get(nodePath(id), options),
        isContended(this.context, nodeLockPath(id), options),
      ]);
      const record = this.table.decode(id, znode, contended);
      if (isCorrupt(record)) throw new CorruptRecordError(record.path, record.reason);
      return record;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }
}

/** Resolves with true if a lock is contended, read past the cache. */
export async function isContended(context: StoreContext, path: string, options?: CallOptions): Promise<boolean> {
  try {
    const { children } = await context.zooKeeper.children(path, options);
    return hasContender(children);
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return false;
    throw error;
  }
}

const NOT_AVAILABLE: readonly string[] = [];

function availability({ node, locked }: NodeRecord): readonly string[] {
  const { state, allocated_to: request, provider, pool, type } = node;
  if (state !== 'ready' || locked || request !== null || provider === null || pool === null) return NOT_AVAILABLE;
  return type.map((label) => availabilityKey(provider, pool, label));
}

function availabilityKey(provider: string, pool: string, label: string): string {
  return JSON.stringify([provider, pool, label]);
}
