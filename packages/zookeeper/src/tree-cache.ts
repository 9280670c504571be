/**
 * A cache of a subtree, updated by one recursive watch. See `TreeCache` for the contract.
 *
 * A generation lasts from one setting of the watch to the next. Within it, messages arrive in the order of the server's
 * transactions, but promises of answers resolve after later events were delivered. Therefore only data of a later
 * transaction, or of a later write in the same one, replaces data, and a deletion event voids the reads before it.
 */

import type { CallOptions, PersistentWatch, Stat, WatchEvent, ZooKeeper } from './api.js';
import { systemClock, type Clock, type Timer } from './clock.js';
import { ClosedError, isZooKeeperError, type ZooKeeperError } from './errors.js';
import { Deadline, untilAborted } from './deadline.js';
import type { TreeCache, TreeCacheOptions, TreeListener, TreeNode, WriteExpectation } from './recipes-api.js';
import { CachedNode, childPath, nameOf, TreeNodes } from './tree-nodes.js';
import { TreeReads, type TreeRead } from './tree-reads.js';
import { FIRST_BATCH_SIZE, TreeWalk, type BatchSize, type WalkHandler } from './tree-walk.js';
import { warnProcess } from './warn.js';
import { Announcement, WriteExpectations, type OutcomeHandler, type Written } from './write-expectations.js';

export interface TreeCacheSettings extends TreeCacheOptions {
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Called with the errors of reads, which are retried, and of listeners. Default: a process warning. */
  readonly onWarning?: (error: Error) => void;
}

const EMPTY = new Uint8Array();
const NO_STAT: Stat = {
  czxid: 0n,
  mzxid: 0n,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 0n,
};
/** Delay before a failed read is retried, milliseconds. */
const RETRY_MS = 1000;

/**
 * Starts to cache `root` and its descendants. A node's `stat` is that of the last read or write of its data, so its
 * counts of children may be old; it is all zeros for znodes whose data the cache does not hold. The listener may
 * receive a child before its parent.
 */
export function treeCache(
  zk: ZooKeeper,
  root: string,
  listener: TreeListener,
  settings: TreeCacheSettings = {},
): TreeCache {
  return new ZooKeeperTreeCache(zk, root, listener, settings);
}

class ZooKeeperTreeCache implements TreeCache, OutcomeHandler {
  complete = false;
  private readonly clock: Clock;
  private readonly wantsData: (path: string) => boolean;
  private readonly isLeaf: (path: string) => boolean;
  private readonly batchSize: BatchSize = { reads: FIRST_BATCH_SIZE };
  private readonly nodes: TreeNodes;
  private readonly expectations = new WriteExpectations();
  private readonly watch: PersistentWatch;
  private reads: TreeReads;
  private walk: TreeWalk | undefined;
  private loaded = false;
  private generation = 0;
  /** Paths deleted since the current load began. */
  private deletedInLoad = new Set<string>();
  /** Failed reads that wait for their retry, by path. */
  private retries = new Map<string, Timer>();
  private waiters: (() => void)[] = [];
  private closed = false;
  /** The path whose present entry is the last before the deletion in progress. */
  private lastRead: string | undefined;
  /** The reason why the cache cannot become complete; undefined if it can. */
  private failure: ZooKeeperError | undefined;

  constructor(
    private readonly zk: ZooKeeper,
    readonly root: string,
    private readonly listener: TreeListener,
    private readonly settings: TreeCacheSettings,
  ) {
    this.clock = settings.clock ?? systemClock;
    this.wantsData = settings.wantsData ?? (() => true);
    this.isLeaf = settings.isLeaf ?? (() => false);
    this.nodes = new TreeNodes(this.onRemoved);
    this.reads = this.newReads();
    zk.on('state', this.onState);
    this.watch = zk.watch(root, 'persistent-recursive', {
      onEvent: this.onEvent,
      onReset: () => this.load(),
      onError: (error) => this.fail(error),
    });
  }

  async ready(options: CallOptions = {}): Promise<void> {
    const deadline = new Deadline(this.clock, `the cache of ${this.root}`, options);
    try {
      while (!this.complete) {
        if (this.failure !== undefined) throw this.failure;
        if (this.zk.state === 'closed')
          throw new ClosedError('closed', `the cache of ${this.root}: the client is closed`);
        const completed = new Promise<void>((resolve) => this.waiters.push(resolve));
        await untilAborted(completed, [deadline.signal]);
      }
    } finally {
      deadline.end();
    }
  }

  get(path: string): TreeNode | undefined {
    return this.nodes.byPath.get(path);
  }

  children(path: string): ReadonlySet<string> {
    return new Set(this.nodes.childrenOf(path).map(nameOf));
  }

  pendingReads(matches: (path: string) => boolean): Promise<void> | undefined {
    return this.reads.answered((path) => this.nodes.byPath.get(path) === undefined && matches(path));
  }

  pendingRead(path: string): Promise<void> | undefined {
    return this.reads.answeredOne(path);
  }

  refresh(): Promise<void> | undefined {
    return this.reads.answered(() => true);
  }

  expect(paths: readonly string[]): WriteExpectation {
    const announced = paths.map((path) => {
      if (!this.contains(path) || !this.wantsData(path)) return undefined;
      this.expectations.announce(path);
      return path;
    });
    return new Announcement(announced, this.generation, this);
  }

  created(
    path: string,
    {
      data,
      stat,
      isRecreated = false,
    }: { readonly data: Uint8Array; readonly stat: Stat; readonly isRecreated?: boolean },
  ): void {
    if (this.closed || !this.contains(path) || !this.wantsData(path)) return;
    // The event of a later deletion may have arrived between the answer and this call.
    if (this.nodes.byPath.get(path) === undefined && !this.reads.withdraw(path, isRecreated ? 1 : 0)) return;
    this.put(path, data, stat);
  }

  close(): void {
    this.closed = true;
    this.zk.off('state', this.onState);
    this.watch.close();
    this.abandonLoad();
    this.setComplete(false);
  }

  // ---- Events and loads

  private readonly onState = (): void => {
    if (this.zk.state !== 'connected') {
      this.loaded = false;
      this.updateComplete();
    }
    if (this.zk.state === 'closed') this.wake();
  };

  private readonly onEvent = ({ type, path }: WatchEvent): void => {
    if (this.closed) return;
    if (type === 'deleted') {
      if (this.walk !== undefined) this.deletedInLoad.add(path);
      if (!this.reads.isPending(path) && !this.expectations.hasUnread(path)) this.lastRead = path;
      this.expectations.noteEvent(path, type);
      this.reads.deleted(path);
      if (this.retries.size > 0) this.resolveRetry(path);
      this.nodes.remove(path);
      this.lastRead = undefined;
    } else if (type === 'created' || type === 'changed') {
      if (type === 'created') this.deletedInLoad.delete(path);
      if (!this.wantsData(path)) this.putPresence(path);
      else if (!this.expectations.noteEvent(path, type)) this.reads.request(path);
    }
  };

  /** Reads the whole subtree, because events may have been missed. */
  private load(): void {
    if (this.closed) return;
    this.abandonLoad();
    this.generation++;
    this.loaded = false;
    this.updateComplete();
    this.reads = this.newReads();
    const handler: WalkHandler = {
      wantsData: this.wantsData,
      isLeaf: this.isLeaf,
      isKnown: (path) => this.nodes.byPath.get(path) !== undefined,
      onRead: (path, result) => this.read(path, result),
      onPresent: (path) => {
        // The listing may be older than the deletion event.
        if (!this.deletedInLoad.has(path)) this.putPresence(path);
      },
      onChildren: (path, names) => this.listed(path, names),
      // Not among `retries`, because a later read of the same path does not replace a part of the load.
      onFailure: (error, retry) => void this.schedule(error, retry),
      onDone: () => {
        this.walk = undefined;
        // No listing shows that a znode is missing whose parent was deleted before the cache had read it.
        this.nodes.removeUnconfirmed(this.generation);
        this.loaded = this.zk.state === 'connected';
        this.deletedInLoad = new Set();
        this.updateComplete();
      },
    };
    this.walk = new TreeWalk(this.zk, this.reads, handler, this.batchSize);
    this.walk.start(this.root);
  }

  private abandonLoad(): void {
    this.walk?.abandon();
    this.reads.abandon();
    this.walk = undefined;
    this.deletedInLoad = new Set();
    for (const timer of this.retries.values()) timer.cancel();
    this.retries = new Map();
  }

  private newReads(): TreeReads {
    const reads: TreeReads = new TreeReads(
      this.zk,
      (path, result) => {
        if (reads !== this.reads || this.closed) return;
        this.read(path, result);
        this.resolveRetry(path);
      },
      (path, error) => {
        if (reads === this.reads && !this.closed) this.retryLater(path, error, () => reads.request(path));
      },
      this.clock,
      this.settings.readDelayMs ?? (() => 0),
    );
    return reads;
  }

  // ---- Updates

  private read(path: string, result: TreeRead): void {
    if (result !== undefined) this.put(path, result.data, result.stat);
    // Data in the cache came with earlier answers, but a later event may have reported the existence.
    else if (this.wantsData(path) || this.nodes.byPath.get(path)?.generation !== this.generation)
      this.nodes.remove(path);
  }

  private put(path: string, data: Uint8Array, stat: Stat): void {
    const before = this.nodes.byPath.get(path);
    if (before !== undefined) {
      if (before.generation === this.generation) {
        if (!isLater(stat, before.stat)) return;
      } else if (isSame(before, data, stat)) {
        before.generation = this.generation;
        return;
      }
    }
    this.store(new CachedNode(path, data, stat, this.generation), before);
  }

  private putPresence(path: string): void {
    const before = this.nodes.byPath.get(path);
    if (before === undefined) this.store(new CachedNode(path, EMPTY, NO_STAT, this.generation), undefined);
    else before.generation = this.generation;
  }

  private store(node: CachedNode, before: CachedNode | undefined): void {
    this.nodes.put(node, before);
    try {
      this.listener.onPut(node, before);
    } catch (error) {
      this.warn(error);
    }
  }

  private readonly onRemoved = (node: CachedNode): void => {
    try {
      this.listener.onRemove(node, this.complete && this.lastRead === node.path);
    } catch (error) {
      this.warn(error);
    }
  };

  /** Removes the children that the server does not list, unless this load has confirmed them otherwise. */
  private listed(path: string, names: readonly string[]): void {
    const known = this.nodes.childrenOf(path);
    if (known.length === 0) return;
    const listed = new Set(names.map((name) => childPath(path, name)));
    for (const child of known) {
      if (!listed.has(child) && this.nodes.byPath.get(child)?.generation !== this.generation) this.nodes.remove(child);
    }
  }

  onApplied(path: string, node: Written['node'], since: number): void {
    const { mustRead, deleted } = this.expectations.settle(path, 'applied');
    if (this.closed) return;
    if (mustRead || since !== this.generation) this.reads.request(path);
    if (since !== this.generation) return;
    if (node !== undefined) {
      // The event of a later deletion may have arrived between the answer and this call.
      if (!deleted) this.put(path, node.data, node.stat);
    } else if (!mustRead) {
      if (!this.reads.isPending(path)) this.lastRead = path;
      this.reads.deleted(path);
      this.nodes.remove(path);
      this.lastRead = undefined;
    }
  }

  onNotApplied(path: string, outcome: 'untouched' | 'unknown'): void {
    const { mustRead } = this.expectations.settle(path, outcome);
    if (mustRead && !this.closed) this.reads.request(path);
  }

  private contains(path: string): boolean {
    const { root } = this;
    return path === root || root === '/' || (path.startsWith(root) && path.charCodeAt(root.length) === 0x2f);
  }

  // ---- Completeness

  /** Schedules a retry. The cache is incomplete until it succeeds. */
  private retryLater(path: string, error: unknown, retry: () => void): void {
    const timer = this.schedule(error, retry);
    if (timer === undefined) return;
    this.retries.get(path)?.cancel();
    this.retries.set(path, timer);
    this.updateComplete();
  }

  /** Reports the error of a read and schedules its retry, unless the client is closed. */
  private schedule(error: unknown, retry: () => void): Timer | undefined {
    if (isZooKeeperError(error, 'closed')) return undefined;
    if (this.zk.state === 'connected') this.warn(error);
    return this.clock.schedule(RETRY_MS, retry, { background: true });
  }

  private resolveRetry(path: string): void {
    this.retries.get(path)?.cancel();
    if (this.retries.delete(path)) this.updateComplete();
  }

  private updateComplete(): void {
    this.setComplete(this.loaded && this.retries.size === 0);
  }

  private setComplete(complete: boolean): void {
    if (complete === this.complete) return;
    this.complete = complete;
    try {
      this.listener.onComplete?.(complete);
    } catch (error) {
      this.warn(error);
    }
    if (complete) this.wake();
  }

  private wake(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Stops updating after the server refused the watch. */
  private fail(error: ZooKeeperError): void {
    this.failure = error;
    this.loaded = false;
    this.abandonLoad();
    this.updateComplete();
    this.warn(error);
    this.wake();
  }

  /** Reports an error, also of a listener, which must not interrupt an update of the cache. */
  private warn(error: unknown): void {
    const warning = error instanceof Error ? error : new Error(String(error));
    (this.settings.onWarning ?? warnProcess)(warning);
  }
}

/** Returns true if the data of one stat are newer than those of the other. A transaction may write a znode twice. */
function isLater(one: Stat, other: Stat): boolean {
  return one.mzxid > other.mzxid || (one.mzxid === other.mzxid && one.version > other.version);
}

/** Compares data too, because transaction ids repeat after a restore from a backup. */
function isSame(node: CachedNode, data: Uint8Array, stat: Stat): boolean {
  return node.stat.mzxid === stat.mzxid && node.stat.czxid === stat.czxid && Buffer.compare(node.data, data) === 0;
}
