/** Nodes: `/nodepool/nodes`. */

import {
  ensurePath,
  isZooKeeperError,
  type CallOptions,
  type LockOptions,
  type TransactionOp,
  type TransactionResult,
} from '@nodepool/zookeeper';
import { nodeCodec } from './codec/node.js';
import { sleep, type Node, type NodeData } from '@nodepool/core';
import type { CorruptRecord } from './errors.js';
import type { Change, NodeEntry, NodeHandle, NodeStore } from './api.js';
import { isStale } from './commit.js';
import type { StoreContext } from './context.js';
import { EmptyRecords } from './empty-records.js';
import { settleEvents } from './settle-events.js';
import { KeyIndex } from './indexes.js';
import { NodeLocks, type Target } from './node-locks.js';
import { createOps, NodeRecord, readNode, type NodeTable } from './node-record.js';
import { NODES_ROOT, isNodeRecord, nameOf, nodePath, placeOfNode, supplyPath } from './paths.js';
import { RecordTable } from './record-table.js';
import { statOfNew } from './stat-of-new.js';
import { checkTransactionSize } from './transaction-size.js';
import { znodesBelow } from './znodes-below.js';

const NO_DATA = new Uint8Array();

/**
 * Number of attempts to create nodes in a transaction that no other creation precedes. While many nodes are created,
 * every attempt may fail.
 */
const MAX_GUARDED = 20;
/** Wait (ms) between checks whether the caches are complete. */
const CHECK_AGAIN_MS = 50;

export class NodeRecords implements NodeStore {
  private readonly byState = new KeyIndex<NodeRecord>();
  private readonly byProvider = new KeyIndex<NodeRecord>();
  private readonly byRequest = new KeyIndex<NodeRecord>();
  private readonly byAvailability = new KeyIndex<NodeRecord>();
  private readonly table: NodeTable;
  private readonly empty: EmptyRecords;
  readonly locks: NodeLocks;

  constructor(private readonly context: StoreContext) {
    this.table = new RecordTable<NodeData, NodeRecord>({
      what: 'node',
      codec: nodeCodec,
      path: nodePath,
      entry: NodeRecord,
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
      table: this.table,
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
    return this.byRequest.present(requestId, this.table.entries);
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
    return readNode(this.context, this.table, id, options);
  }

  removeEmpty(options?: CallOptions): Promise<void> {
    return this.empty.remove(options);
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
    const { zooKeeper, caches, clock } = this.context;
    const path = supplyPath(provider);
    for (let failures = 0; ; failures += 1) {
      const version = await this.supplyVersion(path, options);
      const guard = failures < MAX_GUARDED ? await this.nextIdIsFree(options) : [];
      // The cache then has the records of every transaction up to this version.
      do {
        if (!caches.complete) await caches.ready(options);
        // The caches are not complete before the state of the server is checked, which needs further answers.
        if (!caches.complete) await sleep(clock, CHECK_AGAIN_MS, options?.signal);
        await caches.pendingReads(NODES_ROOT, () => true);
      } while (!caches.complete);
      await settleEvents();
      const nodes = plan();
      if (nodes.length === 0) return [];
      const ops: TransactionOp[] = [{ type: 'set', path, data: NO_DATA, version }, ...guard, ...createOps(nodes)];
      checkTransactionSize(ops);
      try {
        const results = await zooKeeper.transaction(ops, options);
        const before = 1 + guard.length;
        return this.created(ops.slice(before), results.slice(before));
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
    const ids: string[] = [];
    results.forEach((result, index) => {
      const op = ops[index];
      if (result.type !== 'create' || op?.type !== 'create') return;
      const data = op.data ?? NO_DATA;
      const stat = result.stat ?? statOfNew(this.context, data);
      this.context.caches.created(result.path, { data, stat });
      ids.push(nameOf(result.path));
    });
    return ids;
  }

  tryLock(
    id: string,
    options?: { readonly change?: Partial<NodeData>; readonly from?: NodeEntry } & CallOptions,
  ): Promise<NodeHandle | undefined> {
    const target = { id, change: options?.change, from: options?.from };
    return this.locks.tryLockAll([target], options).then(first);
  }

  tryLockAll(nodes: readonly Target[], options?: CallOptions): Promise<readonly NodeHandle[] | undefined> {
    return this.locks.tryLockAll(nodes, options);
  }

  lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle> {
    return this.locks.lock(id, options);
  }
}

function first<T>(list: readonly T[] | undefined): T | undefined {
  return list?.[0];
}

function availability(record: NodeRecord | undefined): readonly string[] | undefined {
  if (record === undefined || record.locked) return undefined;
  const { state, allocated_to: request, provider, pool, type } = record.node;
  if (state !== 'ready' || request !== null || provider === null || pool === null) return undefined;
  const keys: string[] = [];
  for (const label of type) keys.push(availabilityKey(provider, pool, label));
  return keys;
}

function availabilityKey(provider: string, pool: string, label: string): string {
  return JSON.stringify([provider, pool, label]);
}
