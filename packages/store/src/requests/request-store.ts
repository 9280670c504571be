/** Requests: `/nodepool/requests`, and their locks: `/nodepool/requests-lock`. */

import {
  ensurePath,
  firstContender,
  isZooKeeperError,
  type CallOptions,
  type HeldLock,
  type TransactionOp,
  type TransactionResult,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import { claimOf, claimPlan, writtenBy, type Claim, type NodeClaim } from '../commit/claim.js';
import { requestCodec } from '../codec/request.js';
import { bytesOf, type Source } from '../codec/codec.js';
import { projectOf, type NodeData, type NodeRequest, type NodeRequestData } from '@nodepool/core';
import { type CorruptRecord, CorruptRecordError } from '../errors.js';
import type { Change } from '../tables/change.js';
import { type NodeEntry, createOps } from '../nodes/node-entry.js';
import { RequestEntry } from './request-entry.js';
import { isStale } from '../commit/commit.js';
import { counterVersion } from '../commit/counter.js';
import { statOfNew } from '../commit/stat-of-new.js';
import { checkTransactionSize } from '../commit/transaction-size.js';
import { now, type StoreContext } from '../context.js';
import { settleEvents } from '../tables/settle-events.js';
import { KeyIndex } from '../tables/indexes.js';
import type { NodeStore } from '../nodes/node-store.js';
import type { ForetoldIds } from '../nodes/next-ids.js';
import { OrphanedLockIndex } from './orphaned-lock-index.js';
import { RecordHandle } from '../commit/record-handle.js';
import {
  NODES_ROOT,
  REQUESTS_ROOT,
  REQUEST_LOCKS_ROOT,
  nameOf,
  newRequestPath,
  nodeLockPath,
  placeOfRequestLock,
  requestLockPath,
  requestOf,
  requestPath,
  requestorPath,
} from '../paths.js';
import { RecordTable, isCorrupt } from '../tables/record-table.js';
import { RequestHandle } from './request-handle.js';
import { isContended } from '../znodes-below.js';
import type { NodeHandle } from '../nodes/node-handle.js';

/** Delay of the reads of a request that another program has locked, milliseconds. */
const LOCKED_DELAY_MS = 1000;

export interface AcceptedRequest {
  readonly request: RequestHandle;
  /**
   * Ids of the created records, in order. Unless they are `started`, they are in state `init` and not locked:
   * `NodeStore.tryLockAll` locks them.
   */
  readonly created: readonly string[];
  /** Handles of the created records, if the transaction has also locked and changed them; else empty. */
  readonly started: readonly NodeHandle[];
  /** Handles in the order of `reuse`. */
  readonly reused: readonly NodeHandle[];
}

/** The requests of the ensemble, and their locks. */
export class RequestStore {
  private readonly byState = new KeyIndex<RequestEntry>();
  private readonly table: RecordTable<NodeRequestData, RequestEntry>;
  private readonly orphans = new OrphanedLockIndex();
  private delaysReads = false;

  constructor(
    private readonly context: StoreContext,
    private readonly nodes: NodeStore,
  ) {
    this.table = new RecordTable<NodeRequestData, RequestEntry>({
      what: 'request',
      codec: requestCodec,
      path: requestPath,
      entry: RequestEntry,
      reindex: (id, before, after) => {
        const from = before?.request.state;
        const to = after?.request.state;
        if (from !== to) this.byState.move(id, from, to);
      },
      log: context.log,
    });
    this.addCaches();
  }

  /** Delays the reads of changes while other programs have a request locked: its entry may be up to a second old. */
  delayReads(): void {
    this.delaysReads = true;
  }

  get size(): number {
    return this.table.entries.size;
  }

  get(id: string): RequestEntry | undefined {
    return this.table.entries.get(id);
  }

  all(): Iterable<RequestEntry> {
    return this.table.all();
  }

  inState(state: NodeRequest['state']): Iterable<RequestEntry> {
    return this.byState.select(state, this.table.entries);
  }

  corrupt(): Iterable<CorruptRecord> {
    return this.table.corrupt();
  }

  onChange(listener: (change: Change<RequestEntry>) => void): () => void {
    return this.table.onChange(listener);
  }

  /**
   * Returns the ids of uncontended lock directories whose request no longer exists. When the last contender of such a
   * lock disappears, listeners receive a change with neither `before` nor `after`.
   */
  orphanedLocks(): Iterable<string> {
    return this.orphans.ids();
  }

  /** Reads the record past the cache. When it resolves, the cache has all changes that preceded the call. */
  async read(id: string, options?: CallOptions): Promise<RequestEntry | undefined> {
    const { caches } = this.context;
    const caughtUp = [NODES_ROOT, REQUESTS_ROOT].map(async (root) => caches.refresh(root));
    try {
      const [znode, contended] = await Promise.all([
        this.context.zooKeeper.get(requestPath(id), options),
        isContended(this.context.zooKeeper, requestLockPath(id), options),
      ]);
      const record = this.table.decode(id, znode, contended);
      if (isCorrupt(record)) throw new CorruptRecordError(record.path, record.reason);
      return record;
    } catch (error) {
      // An id from the record of a node can be any text, also one that no znode can have.
      if (isZooKeeperError(error, 'no-node') || isZooKeeperError(error, 'invalid-argument')) return undefined;
      throw error;
    } finally {
      await Promise.all(caughtUp);
    }
  }

  /** Submits a request and resolves with its id. The znode is persistent unless `ephemeral`. Priority is 0 to 999. */
  async submit(
    request: NodeRequestData,
    options: { readonly priority: number; readonly ephemeral?: boolean } & CallOptions,
  ): Promise<string> {
    const { priority, ephemeral, ...callOptions } = options;
    if (!Number.isInteger(priority) || priority < 0 || priority > 999) {
      throw new RangeError(`the priority of a request must be a whole number from 0 to 999, not ${priority}`);
    }
    const data = bytesOf(requestCodec.create(request));
    const mode = ephemeral === true ? 'ephemeral-sequential' : 'persistent-sequential';
    const { zooKeeper, caches } = this.context;
    const create = (): ReturnType<ZooKeeper['create']> =>
      zooKeeper.create(newRequestPath(priority), data, { ...callOptions, mode });
    const { path, stat } = await create().catch(async (error: unknown) => {
      if (!isZooKeeperError(error, 'no-node')) throw error;
      // No Nodepool has used the ensemble yet.
      await ensurePath(zooKeeper, REQUESTS_ROOT, callOptions);
      return create();
    });
    caches.created(path, { data, stat });
    return nameOf(path);
  }

  /**
   * Creates and removes requests of one requestor in a transaction, which fails if another process has changed the set
   * of its requests in this way meanwhile, or if a request to remove was changed; then `plan` is called again. It is
   * called with caches that have all earlier changes. Resolves with the ids of the created requests.
   */
  async changeSet(
    requestor: string,
    plan: () => { readonly create: readonly NodeRequestData[]; readonly remove: readonly RequestEntry[] },
    options: { readonly priority: number } & CallOptions,
  ): Promise<readonly string[]> {
    const { priority, ...call } = options;
    const { zooKeeper, caches } = this.context;
    const path = requestorPath(requestor);
    for (;;) {
      const version = await counterVersion(this.context, path, call);
      await caches.caughtUp([NODES_ROOT, REQUESTS_ROOT], call);
      const { create, remove } = plan();
      if (create.length + remove.length === 0) return [];
      const removed = remove.map(({ id }) => requestPath(id));
      const ops: TransactionOp[] = [
        { type: 'set', path, data: new Uint8Array(), version },
        ...remove.map(({ id, version: known }) => ({ type: 'delete', path: requestPath(id), version: known }) as const),
        ...create.map((request) => ({
          type: 'create' as const,
          path: newRequestPath(priority),
          data: bytesOf(requestCodec.create(request)),
          options: { mode: 'persistent-sequential' as const },
        })),
      ];
      checkTransactionSize(ops);
      const expectation = caches.expect(removed);
      try {
        const results = await zooKeeper.transaction(ops, call);
        expectation.applied(removed.map((each) => ({ path: each, node: undefined })));
        return this.created(ops, results);
      } catch (error) {
        expectation.unknown();
        if (!isStale(error)) throw error;
      }
    }
  }

  /** Returns the ids of the requests that a transaction created with `ops`, and adds them to the cache. */
  private created(ops: readonly TransactionOp[], results: readonly TransactionResult[]): readonly string[] {
    return results.flatMap((result, index) => {
      const op = ops[index];
      if (result.type !== 'create' || op?.type !== 'create') return [];
      const data = op.data ?? new Uint8Array();
      this.context.caches.created(result.path, { data, stat: result.stat ?? statOfNew(this.context, data) });
      return nameOf(result.path);
    });
  }

  /** Deletes a request; does nothing if it does not exist. */
  async remove(id: string, options?: CallOptions): Promise<void> {
    const path = requestPath(id);
    for (;;) {
      const expectation = this.context.caches.expect([path]);
      try {
        await this.context.zooKeeper.delete(path, options);
        expectation.applied([{ path, node: undefined }]);
        return;
      } catch (error) {
        expectation.unknown();
        if (isZooKeeperError(error, 'no-node')) return;
        // Repeating the deletion is safe.
        if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
      }
    }
  }

  /** Deletes the uncontended lock directories of requests that no longer exist. */
  async removeOrphanedLocks(ids: readonly string[], options?: CallOptions): Promise<void> {
    await Promise.all(ids.map((id) => this.removeOrphanedLock(id, options)));
  }

  /**
   * Accepts an uncontended request in one transaction: locks it, sets it to `pending` (or leaves it `pending`), creates
   * the records of nodes to launch, and locks and allocates ready nodes to reuse. Reused nodes get the request's tenant
   * and requestor. Resolves with undefined if another launcher was faster with the request or a node.
   *
   * With `start`, the transaction also locks the new records and applies these changes to them, if no program creates
   * another record at the same time. `isConfirmed` is called when the cache has every record before the new ones.
   */
  async accept(
    entry: RequestEntry,
    nodes: {
      readonly create: readonly NodeData[];
      readonly reuse: readonly NodeEntry[];
      readonly start?: { readonly changes: readonly Partial<NodeData>[]; isConfirmed(): boolean };
    },
    options?: CallOptions,
  ): Promise<AcceptedRequest | undefined> {
    await settleEvents();
    const record = this.table.lockable(entry);
    if (record === undefined || this.table.isContended(entry.id)) return undefined;
    const pending = this.pending(record);
    if (pending === undefined) return undefined;
    const reused = this.claimAll(record.request, nodes.reuse);
    if (reused === undefined) return undefined;
    const claim = claimOf(record, pending, requestPath(record.id), requestLockPath(record.id));
    const claims = [claim, ...reused] as const;
    const { start, create } = nodes;
    if (start?.isConfirmed() === true) {
      const uniqueHex = this.context.random.uuidHex();
      const foretold = this.nodes.foretell(create.length, firstContender(claim.lockPath, uniqueHex));
      if (foretold !== undefined) {
        const changed = create.map((node, index) => ({ ...node, ...start.changes[index] }));
        const accepted = await this.tryAccept(claims, changed, { ...foretold, uniqueHex }, options);
        if (accepted !== 'wrong ids') return accepted;
      }
    }
    const accepted = await this.nodes.unforetold(() => this.tryAccept(claims, create, undefined, options));
    return accepted === 'wrong ids' ? undefined : accepted;
  }

  private async tryAccept(
    claims: readonly [Claim<NodeRequest>, ...NodeClaim[]],
    create: readonly NodeData[],
    foretold: (ForetoldIds & { readonly uniqueHex: string }) | undefined,
    options: CallOptions | undefined,
  ): Promise<AcceptedRequest | 'wrong ids' | undefined> {
    const { caches, locks } = this.context;
    const [claim, ...reused] = claims;
    const guard = foretold?.guard ?? [];
    const creates = createOps(create);
    const plan = claimPlan(caches, claims, [...guard, ...creates], foretold?.ids.map(nodeLockPath));
    const expectation = caches.expect(plan.paths);
    try {
      const wanted = plan.locks.map((each, index) =>
        index === 0 && foretold !== undefined ? { ...each, uniqueHex: foretold.uniqueHex } : each,
      );
      const held = await locks.tryAcquireAll(wanted, { before: plan.ops, ...options });
      const lock = held?.locks[0];
      if (held === undefined || lock === undefined) {
        foretold?.failed(false);
        expectation.unknown();
        return undefined;
      }
      foretold?.applied();
      expectation.applied(writtenBy(claims, held.before));
      const written = held.before[0];
      const version = written?.type === 'set' ? written.stat.version : claim.version;
      const owned = new RecordHandle(claim.path, lock, requestCodec, claim.source, version);
      const results = held.before.slice(claims.length + guard.length);
      const created = this.nodes.created(creates, results, foretold !== undefined);
      return {
        request: new RequestHandle(this.context, claim.id, owned),
        created,
        started: foretold === undefined ? [] : this.startedNodes(created, creates, held.locks.slice(claims.length)),
        reused: this.nodes.locks.handles(reused, held.locks.slice(1), held.before.slice(1)),
      };
    } catch (error) {
      expectation.unknown();
      const isWrong = foretold !== undefined && isOfForetold(error, claims.length);
      foretold?.failed(isWrong);
      if (isWrong) return 'wrong ids';
      if (isStale(error)) return undefined;
      throw error;
    }
  }

  private startedNodes(
    ids: readonly string[],
    ops: readonly TransactionOp[],
    locks: readonly HeldLock[],
  ): readonly NodeHandle[] {
    return ids.map((id, index) => {
      const [op, lock] = [ops[index], locks[index]];
      if (op?.type !== 'create' || op.data === undefined || lock === undefined) {
        throw new Error(`node ${id} was created without its lock`);
      }
      return this.nodes.handleOfNew(id, op.data, lock);
    });
  }

  private readDelayMs(id: string): number {
    const isLate = this.delaysReads && this.table.entries.has(id) && this.table.isContended(id);
    return isLate ? LOCKED_DELAY_MS : 0;
  }

  private addCaches(): void {
    const { caches } = this.context;
    caches.add({
      root: REQUESTS_ROOT,
      wantsData: (path) => requestOf(path) !== undefined,
      readDelayMs: (path) => this.readDelayMs(nameOf(path)),
      onPut: (znode) => {
        const id = requestOf(znode.path);
        if (id === undefined) return;
        this.orphans.update(id, true);
        this.table.put(id, znode);
      },
      onRemove: ({ path }, isCurrent) => {
        const id = requestOf(path);
        if (id === undefined) return;
        // Listeners that are notified of the deletion already see the orphan.
        const isOrphan = this.orphans.update(id, this.table.isContended(id));
        const wasReadable = this.table.remove(id, isCurrent && caches.complete);
        if (isOrphan && !wasReadable) this.notifyOrphan(id);
      },
      table: this.table,
    });
    caches.add({
      root: REQUEST_LOCKS_ROOT,
      wantsData: () => false,
      isLeaf: (path) => placeOfRequestLock(path)?.kind === 'contender',
      onPut: ({ path }, before) => {
        const place = before === undefined ? placeOfRequestLock(path) : undefined;
        if (place === undefined) return;
        if (place.kind === 'lock') this.orphans.directoryAdded(place.id);
        else if (place.kind === 'foreign') this.table.foreignAdded(place.id, path);
        else this.table.contenderAdded(place.id);
        this.updateOrphan(place.id);
      },
      onRemove: ({ path }) => {
        const place = placeOfRequestLock(path);
        if (place === undefined) return;
        if (place.kind === 'lock') this.orphans.directoryRemoved(place.id);
        else this.table.contenderRemoved(place.id, caches.pendingRead(requestPath(place.id)));
        this.updateOrphan(place.id);
      },
    });
  }

  private updateOrphan(id: string): void {
    const isOrphan = this.orphans.update(id, this.table.has(id) || this.table.isContended(id));
    if (isOrphan) this.notifyOrphan(id);
  }

  /** Notifies listeners of a lock that can be deleted. */
  private notifyOrphan(id: string): void {
    if (this.context.caches.complete) this.table.notifyAbsent(id);
  }

  /** Returns the request as `pending`; undefined if its state does not need nodes any more. */
  private pending(record: RequestEntry): Source<NodeRequest> | undefined {
    switch (record.request.state) {
      case 'requested':
        return requestCodec.change(record.source, { state: 'pending', state_time: now(this.context) });
      case 'pending':
        return record.source;
      case 'fulfilled':
      case 'failed':
        return undefined;
    }
  }

  /** Returns claims of ready nodes, which get the request's tenant and requestor. */
  private claimAll(request: NodeRequest, entries: readonly NodeEntry[]): readonly NodeClaim[] | undefined {
    const { id, tenant_name, requestor } = request;
    const project = projectOf(request);
    const claims: NodeClaim[] = [];
    for (const from of entries) {
      const ofProject = project === (from.node.project ?? null) ? {} : { project };
      const change = { allocated_to: id, tenant_name, requestor, ...ofProject };
      const claim = this.nodes.locks.claim({ id: from.id, from, change });
      if (claim === undefined) return undefined;
      claims.push(claim);
    }
    return claims;
  }

  private async removeOrphanedLock(id: string, options?: CallOptions): Promise<void> {
    try {
      await this.context.zooKeeper.delete(requestLockPath(id), options);
    } catch (error) {
      // Already deleted, or contended again.
      if (!isZooKeeperError(error, 'no-node') && !isZooKeeperError(error, 'not-empty')) throw error;
    }
  }
}

/** Returns true if the failed operation is one that depends on foretold ids; those of `claims` come before them. */
function isOfForetold(error: unknown, claims: number): boolean {
  if (!isZooKeeperError(error, 'no-node') && !isZooKeeperError(error, 'node-exists')) return false;
  return error.operationIndex === undefined || error.operationIndex >= claims;
}
