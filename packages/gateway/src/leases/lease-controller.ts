/**
 * Brings leases to their next state: takes the nodes of fulfilled requests, ends expired and lost leases, returns
 * nodes, and deletes old records. Every gateway runs it; compare-and-set decides which of them is faster.
 */

import {
  WorkQueue,
  type Clock,
  type Logger,
  type RandomSource,
  type Reconciled,
  type TaskSupervisor,
} from '@nodepool/core';
import { NodeNotReadyError, requestReasons, RequestRemovedError, type Requestor } from '@nodepool/requestor';
import { requestPath, type RequestEntry, type Store } from '@nodepool/store';
import { isZooKeeperError, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';
import type { LeaseMetrics } from '../metrics.js';
import type { EnsembleClock } from './ensemble-clock.js';
import { LeaseEnding } from './lease-ending.js';
import type { LeaseIndex } from './lease-index.js';
import { ending, requestOp } from './lease-service.js';
import type { LeaseTable } from './lease-table.js';
import { expiryOf, ownerOf, type LeaseEntry, type LeaseNode, type LeaseRecord } from './record.js';

export interface LeaseControllerOptions {
  readonly zooKeeper: ZooKeeper;
  readonly store: Store;
  readonly table: LeaseTable;
  readonly index: LeaseIndex;
  readonly requestor: Requestor;
  readonly time: EnsembleClock;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly tasks: TaskSupervisor;
  readonly log: Logger;
  readonly metrics: LeaseMetrics;
  /** Identifier of this gateway. */
  readonly gateway: string;
  /** Seconds for which the records of ended leases are kept. */
  readonly retention: () => number;
}

/** Time that other gateways leave to the one that wrote a lease last, in milliseconds. */
const OTHERS_MS = 2000;
/** Time limit of one reconciliation, in milliseconds. */
const TIMEOUT_MS = 60_000;
/** Time for the caches to show the request of a new lease, in seconds. */
const CACHE_LAG_S = 10;
/** Time for the caches to show the lease of a request or of nodes, in milliseconds. */
const ORPHAN_MS = 60_000;
/** Number of leases on which a gateway works at the same time. */
const CONCURRENCY = 64;

export class LeaseController {
  private readonly queue: WorkQueue<string>;
  private readonly ending: LeaseEnding;
  /** Start (monotonic milliseconds) of the time for which requests or nodes have no lease, by the id of the lease. */
  private readonly orphans = new Map<string, number>();
  private readonly unsubscribe: (() => void)[];

  constructor(private readonly options: LeaseControllerOptions) {
    const { table, store } = options;
    this.ending = new LeaseEnding(options);
    this.queue = new WorkQueue({
      ...options,
      name: (id) => `lease ${id}`,
      about: (id) => ({ lease: id }),
      reconcile: (id, { signal }) => this.reconcile(id, signal),
      backOff: { firstMs: 500, longestMs: 60_000 },
      concurrency: CONCURRENCY,
    });
    this.unsubscribe = [
      table.onChange(({ id, before, after }) => {
        this.options.metrics.changed(before?.record, after?.record);
        this.enqueue(id);
      }),
      table.onComplete((complete) => {
        if (complete) this.enqueueAll();
      }),
      store.onComplete((complete) => {
        if (complete) this.enqueueAll();
      }),
    ];
  }

  /** Looks at a lease now, or a little later if another gateway has written it last. */
  readonly enqueue = (id: string): void => {
    this.queue.add(id, this.delayOf(this.options.table.get(id)));
  };

  /** Activity of the queue, for the stack dump. */
  activity(): ReturnType<WorkQueue<string>['activity']> {
    return this.queue.activity();
  }

  /** Aborts the work in progress, which this or another gateway continues later. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.abort(new Error('the gateway stops'));
    await this.queue.idle();
  }

  private enqueueAll(): void {
    for (const { id } of this.options.table.all()) this.enqueue(id);
    for (const id of this.options.index.leases()) this.enqueue(id);
  }

  private delayOf(entry: LeaseEntry | undefined): number {
    const { gateway, random } = this.options;
    if (entry === undefined || entry.record.gateway === gateway) return 0;
    return OTHERS_MS * (1 + random.next());
  }

  private async reconcile(id: string, signal: AbortSignal): Promise<Reconciled> {
    const { table, store } = this.options;
    // Both caches call `enqueueAll` when they are complete.
    if (!table.complete || !store.complete) return 'done';
    const entry = table.get(id);
    if (entry === undefined) return this.orphaned(id, signal);
    this.orphans.delete(id);
    switch (entry.record.state) {
      case 'waiting':
        return this.waiting(entry, signal);
      case 'ready':
        return this.ready(entry, signal);
      case 'ending':
        await this.ending.finish(entry, { signal, timeoutMs: TIMEOUT_MS });
        return 'done';
      case 'ended':
        return this.ended(entry, signal);
    }
  }

  private async waiting(entry: LeaseEntry, signal: AbortSignal): Promise<Reconciled> {
    const { index, time, store } = this.options;
    const { id, record } = entry;
    if (this.hasExpired(record)) return this.end(entry, 'expired', [], signal);
    const request = index.requestOf(id);
    if (request === undefined) {
      if (time.now() - Math.max(record.created, record.renewed) < CACHE_LAG_S) return { requeueAfterMs: 1000 };
      return this.end(entry, 'cancelled', ['the node request was deleted by another program'], signal);
    }
    switch (request.request.state) {
      case 'requested':
      case 'pending':
        return this.atExpiry(entry);
      case 'failed':
        return this.end(entry, 'failed', requestReasons(request.request, [...store.components.pools()]), signal);
      case 'fulfilled':
        return this.take(entry, request, signal);
    }
  }

  /** Locks the nodes and makes the lease `ready`, in one transaction. */
  private async take(entry: LeaseEntry, request: RequestEntry, signal: AbortSignal): Promise<Reconciled> {
    const { requestor, table, time, log, metrics } = this.options;
    const { id, record } = entry;
    const { nodes: ids, node_types: labels } = request.request;
    const nodes: LeaseNode[] = ids.map((node, at) => ({ id: node, label: labels[at] ?? '', lost: null }));
    const now = time.now();
    const change: Partial<LeaseRecord> = { state: 'ready', nodes, ready: now };
    try {
      await requestor.resume(request.id).take({
        durable: ownerOf(id),
        userData: { lease: id, name: record.name, created_by: record.created_by },
        alongside: [table.changeOp(entry, change)],
        timeoutMs: TIMEOUT_MS,
        signal,
      });
    } catch (error) {
      if (error instanceof NodeNotReadyError) return this.askAgain(entry, request, error, signal);
      // Another gateway was faster, or the lease was changed: the cache shows it soon.
      const isChanged = error instanceof RequestRemovedError || isZooKeeperError(error, 'bad-version');
      if (isChanged || isZooKeeperError(error, 'no-node')) return { requeueAfterMs: 1000 };
      throw error;
    }
    metrics.ready(now - record.created);
    log.info('Lease has its nodes', { lease: id, node_request_id: request.id, nodes: ids });
    return 'done';
  }

  /** Replaces a request that was fulfilled with a node that was deleted meanwhile, e.g. by an operator. */
  private async askAgain(
    entry: LeaseEntry,
    request: RequestEntry,
    reason: NodeNotReadyError,
    signal: AbortSignal,
  ): Promise<Reconciled> {
    const { zooKeeper, table, clock, log } = this.options;
    const { id, record } = entry;
    const ops: readonly TransactionOp[] = [
      // The change has no content: it makes the transaction fail if the lease has changed.
      table.changeOp(entry, {}),
      { type: 'delete', path: requestPath(request.id), version: request.version },
      requestOp(id, record, clock.now() / 1000),
    ];
    log.warn('A node of a lease was not ready; requesting nodes again', { lease: id, reason: reason.message });
    try {
      await zooKeeper.transaction(ops, { signal });
    } catch (error) {
      if (!isZooKeeperError(error, 'bad-version') && !isZooKeeperError(error, 'no-node')) throw error;
    }
    return { requeueAfterMs: 1000 };
  }

  private async ready(entry: LeaseEntry, signal: AbortSignal): Promise<Reconciled> {
    if (this.hasExpired(entry.record)) return this.end(entry, 'expired', [], signal);
    const lost = await this.lostNodes(entry, signal);
    if (lost.size === 0) return this.atExpiry(entry);
    const { table, log } = this.options;
    log.warn('Lease has lost nodes', { lease: entry.id, nodes: Object.fromEntries(lost) });
    const changed = await table.change(
      entry.id,
      (record) =>
        record.state === 'ready'
          ? { nodes: record.nodes.map((node) => ({ ...node, lost: node.lost ?? lost.get(node.id) ?? null })) }
          : undefined,
      { signal },
    );
    const isLost = changed?.record.state === 'ready' && changed.record.nodes.every((node) => node.lost !== null);
    return isLost ? this.end(changed, 'lost', ['all nodes of the lease are lost'], signal) : { requeueAfterMs: 1000 };
  }

  /** Resolves with the newly lost nodes and the reasons. A loss in the cache is confirmed by the server. */
  private async lostNodes(entry: LeaseEntry, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { store } = this.options;
    const lost = new Map<string, string>();
    for (const { id, lost: known } of entry.record.nodes) {
      const cached = store.nodes.get(id);
      if (known !== null || (cached?.locked === true && cached.node.state === 'in-use')) continue;
      const [node, holder] = await Promise.all([store.nodes.read(id, { signal }), store.nodes.holder(id, { signal })]);
      if (node === undefined) lost.set(id, 'the node was deleted');
      else if (holder?.persistent !== true || holder.identifier !== ownerOf(entry.id)) {
        lost.set(id, 'another program has taken the node away');
      } else if (node.node.state !== 'in-use') lost.set(id, `the node is ${node.node.state}`);
    }
    return lost;
  }

  private async ended(entry: LeaseEntry, signal: AbortSignal): Promise<Reconciled> {
    const { table, time, retention, index } = this.options;
    const { id, record } = entry;
    // A request or a node that became visible late.
    if (index.requestOf(id) !== undefined) await this.ending.withdraw(id, { signal });
    const leftMs = ((record.ended ?? record.created) + retention() - time.now()) * 1000;
    if (leftMs > 0) return { requeueAfterMs: leftMs + this.delayOf(entry) };
    await table.remove(entry, { signal });
    return 'done';
  }

  /** Ends requests and nodes whose lease does not exist, e.g. because an operator has deleted its record. */
  private async orphaned(id: string, signal: AbortSignal): Promise<Reconciled> {
    const { index, clock, table } = this.options;
    if (!index.leases().has(id)) {
      this.orphans.delete(id);
      return 'done';
    }
    const since = this.orphans.get(id) ?? clock.monotonic();
    this.orphans.set(id, since);
    const leftMs = since + ORPHAN_MS - clock.monotonic();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    if ((await table.read(id, { signal })) !== undefined) return { requeueAfterMs: 1000 };
    await this.ending.withdraw(id, { signal });
    await this.ending.returnOrphans(id, { signal });
    this.orphans.delete(id);
    return 'done';
  }

  private async end(
    { id }: LeaseEntry,
    reason: 'expired' | 'failed' | 'lost' | 'cancelled',
    reasons: readonly string[],
    signal: AbortSignal,
  ): Promise<Reconciled> {
    const { table, time, log } = this.options;
    const changed = await table.change(
      id,
      (record) => {
        const isOver = expiryOf(record) === undefined || (reason === 'expired' && !this.hasExpired(record));
        // A lease that has become ready meanwhile neither fails nor is cancelled.
        if (isOver || (record.state === 'ready' && reason !== 'expired' && reason !== 'lost')) return undefined;
        return ending({ reason, outcome: null, comment: null, hold_seconds: null, at: time.now() }, reasons);
      },
      { signal },
    );
    if (changed?.record.end?.reason === reason) log.info('Lease ends', { lease: id, reason, reasons });
    return changed === undefined ? 'done' : { requeueAfterMs: 0 };
  }

  private hasExpired(record: LeaseRecord): boolean {
    return (expiryOf(record) ?? Infinity) <= this.options.time.now();
  }

  private atExpiry(entry: LeaseEntry): Reconciled {
    const leftMs = ((expiryOf(entry.record) ?? 0) - this.options.time.now()) * 1000;
    return { requeueAfterMs: Math.max(0, leftMs) + this.delayOf(entry) };
  }
}
