/** The leases of the ensemble, cached, and their writes. */

import { Emitter, type Clock, type Logger } from '@nodepool/core';
import {
  ensurePath,
  isZooKeeperError,
  treeCache,
  type CallOptions,
  type Stat,
  type TransactionOp,
  type TransactionResult,
  type TreeCache,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import type { EnsembleClock } from './ensemble-clock.js';
import {
  decodeLease,
  encodeRecord,
  GRANTS_ROOT,
  LEASES_ROOT,
  leasePath,
  type LeaseEntry,
  type LeaseRecord,
} from './record.js';

/** A lease before and after a change; undefined if it does not exist. */
export interface LeaseChange {
  readonly id: string;
  readonly before: LeaseEntry | undefined;
  readonly after: LeaseEntry | undefined;
}

export interface LeaseTableOptions {
  readonly zooKeeper: ZooKeeper;
  readonly clock: Clock;
  readonly time: EnsembleClock;
  readonly log: Logger;
  /** Identifier of this gateway, which its writes contain. */
  readonly gateway: string;
}

/** Attempts to change a lease that other gateways change at the same time. */
const MAX_ATTEMPTS = 20;

/** The change of a lease was not written, because other gateways changed it again and again. */
export class ContendedLeaseError extends Error {
  readonly code = 'contended-lease';
  constructor(id: string) {
    super(`lease ${id} was not changed, because other gateways change it all the time`);
    this.name = 'ContendedLeaseError';
  }
}

export class LeaseTable {
  private readonly entries = new Map<string, LeaseEntry>();
  private readonly changes: Emitter<LeaseChange>;
  private readonly completions: Emitter<boolean>;
  private tree: TreeCache | undefined;

  constructor(private readonly options: LeaseTableOptions) {
    const onError = (error: unknown): void => options.log.error('A listener to changes of leases failed', error);
    this.changes = new Emitter(onError);
    this.completions = new Emitter(onError);
  }

  /** True while the cache mirrors the server. */
  get complete(): boolean {
    return this.tree?.complete === true;
  }

  get size(): number {
    return this.entries.size;
  }

  get(id: string): LeaseEntry | undefined {
    return this.entries.get(id);
  }

  all(): Iterable<LeaseEntry> {
    return this.entries.values();
  }

  onChange(listener: (change: LeaseChange) => void): () => void {
    return this.changes.on(listener);
  }

  onComplete(listener: (complete: boolean) => void): () => void {
    return this.completions.on(listener);
  }

  /** Creates missing root znodes and starts the cache. Resolves once it is complete. */
  async start(options?: CallOptions): Promise<void> {
    const { zooKeeper, clock, log } = this.options;
    await this.ensureRoots(options);
    this.tree ??= treeCache(
      zooKeeper,
      LEASES_ROOT,
      {
        onPut: ({ path, data, stat }) => this.put(path, data, stat),
        onRemove: ({ path }) => this.replace(idOf(path), undefined),
        onComplete: (complete) => this.completions.emit(complete),
      },
      { clock, onWarning: (error) => log.warn('The leases cannot be read; retrying', { error }) },
    );
    await this.tree.ready(options);
  }

  close(): void {
    this.tree?.close();
  }

  async ensureRoots(options?: CallOptions): Promise<void> {
    await ensurePath(this.options.zooKeeper, LEASES_ROOT, options);
    await ensurePath(this.options.zooKeeper, GRANTS_ROOT, options);
  }

  /** Resolves once every lease that was created before this client's latest answer is in the cache. */
  async settled(): Promise<void> {
    await this.tree?.pendingReads(() => true);
  }

  /** Reads a lease past the cache. Resolves with undefined if there is none, or if it cannot be read. */
  async read(id: string, options?: CallOptions): Promise<LeaseEntry | undefined> {
    const { zooKeeper } = this.options;
    try {
      await zooKeeper.sync(leasePath(id), options);
      const { data, stat } = await zooKeeper.get(leasePath(id), options);
      const decoded = decodeLease(id, data, stat.version);
      return typeof decoded === 'string' ? undefined : decoded;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /** Returns a lease from the cache, else from the server, where another gateway may just have created it. */
  async find(id: string, options?: CallOptions): Promise<LeaseEntry | undefined> {
    return this.entries.get(id) ?? (await this.read(id, options));
  }

  /** Returns the operation that creates a lease. */
  createOp(id: string, record: Omit<LeaseRecord, 'gateway'>): TransactionOp {
    return {
      type: 'create',
      path: leasePath(id),
      data: encodeRecord({}, { ...record, gateway: this.options.gateway }),
    };
  }

  /** Returns the operation that changes a lease if it still has this version. */
  changeOp({ id, raw, version }: LeaseEntry, change: Partial<LeaseRecord>): TransactionOp {
    const data = encodeRecord(raw, { ...change, gateway: this.options.gateway });
    return { type: 'set', path: leasePath(id), data, version };
  }

  /**
   * Adds to the cache what a transaction of this client has created with `createOp`. Returns the entry; undefined if
   * the result is of another operation.
   */
  created(op: TransactionOp | undefined, result: TransactionResult | undefined): LeaseEntry | undefined {
    if (op?.type !== 'create' || op.data === undefined || result?.type !== 'create') return undefined;
    const { path } = result;
    const entry = decodeLease(idOf(path), op.data, 0);
    if (typeof entry === 'string') return undefined;
    if (!this.entries.has(entry.id)) this.replace(entry.id, entry);
    return entry;
  }

  /**
   * Changes a lease by compare-and-set. `decide` returns the change, or undefined to change nothing, and is called
   * again if another gateway has changed the lease. Resolves with the lease after it; undefined if it does not exist.
   */
  async change(
    id: string,
    decide: (record: LeaseRecord) => Partial<LeaseRecord> | undefined,
    options?: CallOptions,
  ): Promise<LeaseEntry | undefined> {
    let entry = await this.find(id, options);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (entry === undefined) return undefined;
      const change = decide(entry.record);
      if (change === undefined) return entry;
      const written = await this.write(entry, change, options);
      if (written !== undefined) return written;
      entry = await this.read(id, options);
    }
    throw new ContendedLeaseError(id);
  }

  /** Deletes a lease in this version. Resolves with false, changing nothing, if it has changed. */
  async remove({ id, version }: LeaseEntry, options?: CallOptions): Promise<boolean> {
    try {
      await this.options.zooKeeper.delete(leasePath(id), { ...options, version });
      return true;
    } catch (error) {
      if (isZooKeeperError(error, 'bad-version') || isZooKeeperError(error, 'no-node')) return false;
      throw error;
    }
  }

  /** Resolves with undefined if the lease has another version. */
  private async write(
    entry: LeaseEntry,
    change: Partial<LeaseRecord>,
    options?: CallOptions,
  ): Promise<LeaseEntry | undefined> {
    const { zooKeeper, time, clock } = this.options;
    const op = this.changeOp(entry, change);
    if (op.type !== 'set') return undefined;
    const { path, data } = op;
    const expectation = this.tree?.expect([path]);
    const sent = clock.monotonic();
    try {
      const stat = await zooKeeper.set(path, data, { ...options, version: entry.version });
      time.observe(stat, sent);
      expectation?.applied([{ path, node: { data, stat } }]);
      return entryOf(entry.id, data, stat.version);
    } catch (error) {
      expectation?.unknown();
      if (isZooKeeperError(error, 'bad-version') || isZooKeeperError(error, 'no-node')) return undefined;
      if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
      options?.signal?.throwIfAborted();
      const found = await this.read(entry.id, options);
      const isWritten = found?.version === entry.version + 1 && Buffer.compare(encodeRecord(found.raw, {}), data) === 0;
      return isWritten ? found : undefined;
    }
  }

  private put(path: string, data: Uint8Array, { version }: Stat): void {
    if (path === LEASES_ROOT) return;
    const id = idOf(path);
    const entry = decodeLease(id, data, version);
    if (typeof entry === 'string') {
      this.options.log.warn('The record of a lease cannot be read and is ignored', { path, reason: entry });
      this.replace(id, undefined);
    } else this.replace(id, entry);
  }

  private replace(id: string, after: LeaseEntry | undefined): void {
    const before = this.entries.get(id);
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.entries.delete(id);
    else this.entries.set(id, after);
    this.changes.emit({ id, before, after });
  }
}

function idOf(path: string): string {
  return path.slice(LEASES_ROOT.length + 1);
}

function entryOf(id: string, data: Uint8Array, version: number): LeaseEntry | undefined {
  const entry = decodeLease(id, data, version);
  return typeof entry === 'string' ? undefined : entry;
}
