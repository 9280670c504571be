/** Nodes: `/nodepool/nodes`. */

import {
  isZooKeeperError,
  type AdoptOptions,
  type CallOptions,
  type HeldLock,
  type LockHolder,
  type LockOptions,
  type TransactionOp,
  type TransactionResult,
} from '@nodepool/zookeeper';
import { nodeCodec } from '../codec/node.js';
import type { Node, NodeData, NodeInterruption } from '@nodepool/core';
import { CorruptRecordError, type CorruptRecord } from '../errors.js';
import type { Change } from '../tables/change.js';
import { NodeEntry, createOps, readNode, type NodeTable } from './node-entry.js';
import type { NodeHandle } from './node-handle.js';
import { isStale } from '../commit/commit.js';
import { counterVersion } from '../commit/counter.js';
import type { StoreContext } from '../context.js';
import { EmptyRecords } from '../tables/empty-records.js';
import { KeyIndex } from '../tables/indexes.js';
import { writeInterruption } from './interruption.js';
import { NextIds, type ForetoldIds } from './next-ids.js';
import { NodeLocks, type DurableLockOptions, type Target } from './node-locks.js';
import { NODES_ROOT, isNodeRecord, nameOf, nodePath, placeOfNode, supplyPath } from '../paths.js';
import { RecordTable, isCorrupt } from '../tables/record-table.js';
import { statOfNew } from '../commit/stat-of-new.js';
import { checkTransactionSize } from '../commit/transaction-size.js';
import { znodesBelow } from '../znodes-below.js';

const NO_DATA = new Uint8Array();

/**
 * Number of attempts to create nodes in a transaction that no other creation precedes. While many nodes are created,
 * every attempt may fail.
 */
const MAX_GUARDED = 20;

/** Delay of reads of nodes that other launchers handle, milliseconds. */
const OTHERS_DELAY_MS = 1000;

/** Number of locks that are read at the same time. */
const READ_BATCH = 500;

/** The nodes that other launchers handle. */
export interface OtherNodes {
  /** Returns true if their entries may be up to a second old at the moment. */
  mayBeOld(): boolean;
  /** Returns true if the node is one of them. */
  has(node: Node): boolean;
}

/** The node records of the ensemble. */
export class NodeStore {
  private readonly byState = new KeyIndex<NodeEntry>();
  private readonly byProvider = new KeyIndex<NodeEntry>();
  private readonly byRequest = new KeyIndex<NodeEntry>();
  private readonly byAvailability = new KeyIndex<NodeEntry>();
  private readonly table: NodeTable;
  private readonly empty: EmptyRecords;
  private readonly nextIds = new NextIds();
  private otherNodes: OtherNodes | undefined;
  readonly locks: NodeLocks;

  constructor(private readonly context: StoreContext) {
    this.table = new RecordTable<NodeData, NodeEntry>({
      what: 'node',
      codec: nodeCodec,
      path: nodePath,
      entry: NodeEntry,
      reindex: (id, before, after) => {
        const from = before?.node;
        const to = after?.node;
        if (from?.state !== to?.state) this.byState.move(id, from?.state, to?.state);
        if (from?.provider !== to?.provider) this.byProvider.move(id, from?.provider, to?.provider);
        if (from?.allocated_to !== to?.allocated_to) this.byRequest.move(id, from?.allocated_to, to?.allocated_to);
        if (from?.state === 'ready' || to?.state === 'ready') {
          this.byAvailability.move(id, availability(before), availability(after));
        }
      },
      log: context.log,
    });
    this.locks = new NodeLocks(context, this.table);
    this.empty = new EmptyRecords(
      context,
      () => this.table.corrupt(),
      (path) => placeOfNode(path)?.kind === 'lock',
    );
    context.caches.add({
      root: NODES_ROOT,
      wantsData: isNodeRecord,
      isLeaf: (path) => placeOfNode(path)?.kind === 'contender',
      readDelayMs: (path) => this.readDelayMs(nameOf(path)),
      onPut: (znode, before) => {
        const place = placeOfNode(znode.path);
        if (place?.kind === 'record') {
          if (before === undefined) this.nextIds.seen(place.id);
          this.table.put(place.id, znode);
        } else if (before !== undefined) return;
        else if (place?.kind === 'contender') this.table.contenderAdded(place.id, this.changeWithLock(place.id));
        else if (place?.kind === 'foreign') this.table.foreignAdded(place.id, znode.path);
      },
      onRemove: ({ path }) => {
        const place = placeOfNode(path);
        if (place?.kind === 'record') this.table.remove(place.id);
        else if (place?.kind === 'contender' || place?.kind === 'foreign') {
          this.table.contenderRemoved(place.id, context.caches.pendingRead(nodePath(place.id)));
        }
      },
      table: this.table,
    });
  }

  /**
   * Delays the reads of changed records that other launchers handle, to combine them. The entry of a locked node may
   * then be up to a second old; a node whose lock was released counts as locked until it is read.
   */
  delayReads(otherNodes: OtherNodes): void {
    this.otherNodes = otherNodes;
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

  /** Iterates in the order of ids over an index; cheap with 10,000 nodes. */
  inState(state: Node['state']): Iterable<NodeEntry> {
    return this.byState.select(state, this.table.entries);
  }

  allocatedTo(requestId: string): readonly NodeEntry[] {
    return this.byRequest.present(requestId, this.table.entries);
  }

  /** Iterates over nodes that are `ready`, unlocked and not allocated, oldest first. */
  available(query: { readonly label: string; readonly provider: string; readonly pool: string }): Iterable<NodeEntry> {
    return this.byAvailability.select(availabilityKey(query.provider, query.pool, query.label), this.table.entries);
  }

  /** Returns the present ids of the provider's nodes that are `ready`, unlocked and not allocated, in their order. */
  freeOf(provider: string): readonly string[] {
    return this.byAvailability.ids(freeKey(provider));
  }

  /** Returns true if a node of the provider has a record. */
  hasNodesOf(provider: string): boolean {
    return this.byProvider.has(provider);
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

  /**
   * Takes the id of a record that this process has just created. Resolves once all records created before it are in the
   * cache; returns undefined if they already are. Valid only if the store is complete at that time.
   */
  known(id: string): Promise<void> | undefined {
    return this.context.caches.pendingReads(NODES_ROOT, (path) => nameOf(path) <= id);
  }

  /** Reads the record past the cache. When it resolves, the cache has all changes that preceded the call. */
  async read(id: string, options?: CallOptions): Promise<NodeEntry | undefined> {
    const caughtUp = this.refresh();
    const entry = await readNode(this.context, this.table, id, options);
    await caughtUp;
    return entry;
  }

  /**
   * Deletes records that this call and the previous one found empty, unchanged and not locked. Contenders for the locks
   * of deleted nodes leave such records behind.
   */
  removeEmpty(options?: CallOptions): Promise<void> {
    return this.empty.remove(options);
  }

  /** Resolves with the ids of all records, read past the cache. */
  async readIds(options?: CallOptions): Promise<readonly string[]> {
    const { children } = await this.context.zooKeeper.children(NODES_ROOT, options);
    return [...children].sort();
  }

  /** Returns the paths of znodes below a record that no launcher creates there, read past the cache, parents first. */
  async foreignBelow(id: string, options?: CallOptions): Promise<readonly string[]> {
    const below = await znodesBelow(this.context.zooKeeper, nodePath(id), options);
    return below.filter((path) => {
      const kind = placeOfNode(path)?.kind;
      return kind !== 'lock' && kind !== 'contender';
    });
  }

  /** Creates records (without locks) in one transaction. Resolves with their ids in order. */
  async create(nodes: readonly NodeData[], options?: CallOptions): Promise<readonly string[]> {
    if (nodes.length === 0) return [];
    const ops = createOps(nodes);
    checkTransactionSize(ops);
    return this.nextIds.unforetold(async () =>
      this.created(ops, await this.context.zooKeeper.transaction(ops, options)),
    );
  }

  /**
   * Returns the ids of the next records, if the cache has every record with a lower id; undefined if they are not
   * known. A transaction that contains their guard is therefore not preceded by a creation that the cache lacks, except
   * by this process. `proof`: see `NextIds.foretell`.
   */
  foretell(count: number, proof: string): ForetoldIds | undefined {
    const { caches } = this.context;
    if (!caches.complete) return undefined;
    const isKnown = (first: string): boolean => {
      const isUnread = (path: string): boolean => nameOf(path) < first && !this.nextIds.isForetold(nameOf(path));
      return caches.pendingReads(NODES_ROOT, isUnread) === undefined;
    };
    return this.nextIds.foretell(count, isKnown, proof);
  }

  /**
   * Reads all records at once whose reads were delayed. Resolves when the cache has all changes that preceded the call;
   * returns undefined if it already has them.
   */
  refresh(): Promise<void> | undefined {
    return this.context.caches.refresh(NODES_ROOT);
  }

  private readDelayMs(id: string): number {
    if (this.otherNodes?.mayBeOld() !== true) return 0;
    const node = this.table.entries.get(id)?.node;
    return node !== undefined && this.otherNodes.has(node) ? OTHERS_DELAY_MS : 0;
  }

  /**
   * Returns the pending read of a node that its requestor locks, and changes with the same transaction. No launcher has
   * anything to do with the node, so its lock may be shown together with the change.
   */
  private changeWithLock(id: string): Promise<void> | undefined {
    const node = this.table.entries.get(id)?.node;
    if (node?.state !== 'ready' || node.allocated_to === null || this.readDelayMs(id) === 0) return undefined;
    return this.context.caches.pendingRead(nodePath(id));
  }

  /** Creates records whose ids were not foretold. */
  unforetold<T>(create: () => Promise<T>): Promise<T> {
    return this.nextIds.unforetold(create);
  }

  /**
   * Creates the records that `plan` returns in one transaction, which fails if another process has created nodes that
   * the cache did not have during `plan`; then `plan` is called again. Processes whose plans contain only what the
   * cache lacks therefore create it once. Resolves with the ids in order.
   */
  async createOnce(
    provider: string,
    plan: () => readonly NodeData[],
    options?: CallOptions,
  ): Promise<readonly string[]> {
    const { zooKeeper, caches } = this.context;
    const path = supplyPath(provider);
    for (let failures = 0; ; failures += 1) {
      const version = await counterVersion(this.context, path, options);
      const guard = failures < MAX_GUARDED ? await this.nextIdIsFree(options) : [];
      // The cache then has the records of every transaction up to this version.
      await caches.caughtUp([NODES_ROOT], options);
      const nodes = plan();
      if (nodes.length === 0) return [];
      const ops: TransactionOp[] = [{ type: 'set', path, data: NO_DATA, version }, ...guard, ...createOps(nodes)];
      checkTransactionSize(ops);
      try {
        return await this.nextIds.unforetold(async () => {
          const results = await zooKeeper.transaction(ops, options);
          const before = 1 + guard.length;
          return this.created(ops.slice(before), results.slice(before));
        });
      } catch (error) {
        if (!isStale(error) && !isZooKeeperError(error, 'node-exists')) throw error;
      }
    }
  }

  /**
   * Returns operations that fail if any program has created a node record since this call, because it has the id that
   * they use. ZooKeeper numbers sequential znodes with the number of creations below their parent.
   */
  private async nextIdIsFree(options?: CallOptions): Promise<readonly TransactionOp[]> {
    const stat = await this.context.zooKeeper.exists(NODES_ROOT, options);
    if (stat === undefined) return [];
    // The child version counts creations and deletions.
    const creations = (stat.cversion + stat.numChildren) / 2;
    const path = nodePath(String(creations).padStart(10, '0'));
    return [
      { type: 'create', path },
      { type: 'delete', path, version: 0 },
    ];
  }

  /**
   * Returns the ids of records that a transaction created with `ops`, and adds them to the cache. `isGuarded`: the
   * guard of foretold ids precedes the first of them.
   */
  created(ops: readonly TransactionOp[], results: readonly TransactionResult[], isGuarded = false): readonly string[] {
    const ids: string[] = [];
    results.forEach((result, index) => {
      const op = ops[index];
      if (result.type !== 'create' || op?.type !== 'create') return;
      const data = op.data ?? NO_DATA;
      const stat = result.stat ?? statOfNew(this.context, data);
      this.context.caches.created(result.path, { data, stat, isRecreated: isGuarded && ids.length === 0 });
      const id = nameOf(result.path);
      this.nextIds.seen(id);
      ids.push(id);
    });
    return ids;
  }

  /**
   * Locks an uncontended node and applies `change`, if given, in one transaction. Resolves with undefined if the lock
   * is taken, or if the record was changed or deleted. Requires the version of `from` if given, else the cached
   * version.
   */
  tryLock(
    id: string,
    options?: { readonly change?: Partial<NodeData>; readonly from?: NodeEntry } & CallOptions,
  ): Promise<NodeHandle | undefined> {
    const target = { id, change: options?.change, from: options?.from };
    return this.locks.tryLockAll([target], options).then(first);
  }

  /** Does the same as `tryLock` for several nodes: all or none. With an `owner`, the locks are durable. */
  tryLockAll(
    nodes: readonly Target[],
    options?: CallOptions | DurableLockOptions,
  ): Promise<readonly NodeHandle[] | undefined> {
    return this.locks.tryLockAll(nodes, options);
  }

  /**
   * Adopts the durable lock of an owner, and reads the node past the cache. Resolves with undefined if the owner does
   * not hold the lock. Rejects with `CorruptRecordError` if the record cannot be read; the owner still holds the lock.
   */
  adopt(id: string, owner: string, options?: AdoptOptions & CallOptions): Promise<NodeHandle | undefined> {
    return this.locks.adopt(id, owner, options);
  }

  /**
   * Returns a handle of a node whose lock several processes share (`adopt` without `takeOver`). It writes only to the
   * version of `entry`, so that one of the processes succeeds.
   */
  shared(entry: NodeEntry, lock: HeldLock): NodeHandle {
    return this.locks.handleOf(entry, lock);
  }

  /** Reads the holder of the node's lock past the cache. Resolves with undefined if the lock is free. */
  holder(id: string, options?: CallOptions): Promise<LockHolder | undefined> {
    return this.locks.holder(id, options);
  }

  /**
   * Resolves with the ids of the nodes, of all or of `among`, whose durable lock the owner holds. Reads the locks past
   * the cache, so that a program can continue after a restart.
   */
  async heldBy(
    owner: string,
    options: CallOptions & { readonly among?: readonly string[] } = {},
  ): Promise<readonly string[]> {
    const { among, ...call } = options;
    // The client may have moved to a server that lags behind the one that processed the locks.
    await this.context.zooKeeper.sync(NODES_ROOT, call);
    const ids = among ?? (await this.readIds(call));
    const held: string[] = [];
    for (let start = 0; start < ids.length; start += READ_BATCH) {
      const batch = ids.slice(start, start + READ_BATCH);
      const holders = await Promise.all(batch.map((id) => this.holder(id, call)));
      held.push(...batch.filter((_, at) => holders[at]?.persistent === true && holders[at].identifier === owner));
    }
    return held;
  }

  /**
   * Writes the interruption of a node, which another process may have locked, or removes it. Resolves with false if the
   * record has changed since `entry`.
   */
  setInterruption(entry: NodeEntry, interruption: NodeInterruption | null, options?: CallOptions): Promise<boolean> {
    return writeInterruption(this.context, entry, interruption, options);
  }

  /** Returns a handle of a record that this process has just created and locked with this data. */
  handleOfNew(id: string, data: Uint8Array, lock: HeldLock): NodeHandle {
    const entry = this.table.decode(id, { data, stat: statOfNew(this.context, data) }, true);
    if (isCorrupt(entry)) throw new CorruptRecordError(entry.path, entry.reason);
    return this.locks.handleOf(entry, lock);
  }

  /** Waits in line for the lock (the CLI does; daemons use `tryLock`). The node is read again under the lock. */
  lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle> {
    return this.locks.lock(id, options);
  }
}

function first<T>(list: readonly T[] | undefined): T | undefined {
  return list?.[0];
}

function availability(record: NodeEntry | undefined): readonly string[] | undefined {
  if (record === undefined || record.locked) return undefined;
  const { state, allocated_to: request, provider, pool, type } = record.node;
  if (state !== 'ready' || request !== null || provider === null) return undefined;
  const keys = [freeKey(provider)];
  if (pool === null) return keys;
  for (const label of type) keys.push(availabilityKey(provider, pool, label));
  return keys;
}

function freeKey(provider: string): string {
  return JSON.stringify([provider]);
}

function availabilityKey(provider: string, pool: string, label: string): string {
  return JSON.stringify([provider, pool, label]);
}
