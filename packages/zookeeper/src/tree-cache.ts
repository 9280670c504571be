/**
 * A mirror of the znodes below a root, fed by one recursive watch; see `TreeCache` for what it promises.
 *
 * Within a generation (from one setting of the watch to the next) everything that arrives is in the order of the
 * server's transactions, except that the answers to reads and writes reach us a turn later than events that came after
 * them. Hence: data is only replaced by data of a later transaction, and an event of a deletion voids the reads before it.
 */

import type { CallOptions, PersistentWatch, Stat, WatchEvent, ZooKeeper } from './api.js';
import { systemClock, type Clock, type Timer } from './clock.js';
import { isZooKeeperError, type ZooKeeperError } from './errors.js';
import { Deadline, untilAborted } from './deadline.js';
import type { TreeCache, TreeCacheOptions, TreeListener, TreeNode, WriteExpectation } from './recipes-api.js';
import { CachedNode, childPath, TreeNodes } from './tree-nodes.js';
import { TreeReads, type ReadResult } from './tree-reads.js';
import { TreeWalk } from './tree-walk.js';
import { warnProcess } from './warn.js';
import { WriteExpectations } from './write-expectations.js';

export interface TreeCacheSettings extends TreeCacheOptions {
  /** Default: the real time. */
  readonly clock?: Clock;
  /** Told of reads that fail (they are tried again) and of listeners that throw. Default: a warning of the process. */
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
const RETRY_MS = 1000;

/**
 * Starts to mirror `root` and what is below it. The stat of a node is that of the last read or write of its data: numbers
 * of its children in it may be old. Of znodes whose data is not wanted it is all zeros. A child may be told of before its
 * parent.
 */
export function treeCache(
  zk: ZooKeeper,
  root: string,
  listener: TreeListener,
  settings: TreeCacheSettings = {},
): TreeCache {
  return new ZooKeeperTreeCache(zk, root, listener, settings);
}

class ZooKeeperTreeCache implements TreeCache {
  complete = false;
  private readonly clock: Clock;
  private readonly wantsData: (path: string) => boolean;
  private readonly nodes = new TreeNodes();
  private readonly expectations = new WriteExpectations();
  private readonly watch: PersistentWatch;
  private reads: TreeReads;
  private walk: TreeWalk | undefined;
  private loaded = false;
  private generation = 0;
  /** Deleted since the present load began. */
  private deletedInLoad = new Set<string>();
  /** Reads that failed and will be made again. */
  private retries = new Map<string, Timer>();
  private waiters: (() => void)[] = [];
  private closed = false;
  /** Why it will never be complete. */
  private failure: ZooKeeperError | undefined;

  constructor(
    private readonly zk: ZooKeeper,
    readonly root: string,
    private readonly listener: TreeListener,
    private readonly settings: TreeCacheSettings,
  ) {
    this.clock = settings.clock ?? systemClock;
    this.wantsData = settings.wantsData ?? (() => true);
    this.reads = this.newReads();
    zk.on('state', this.onState);
    this.watch = zk.watch(root, 'persistent-recursive', {
      onEvent: (event) => this.onEvent(event),
      onReset: () => this.load(),
      onError: (error) => this.fail(error),
    });
  }

  async ready(options: CallOptions = {}): Promise<void> {
    const deadline = new Deadline(this.clock, `the mirror of ${this.root}`, options);
    try {
      while (!this.complete) {
        if (this.failure !== undefined) throw this.failure;
        const completed = new Promise<void>((resolve) => this.waiters.push(resolve));
        await untilAborted(completed, [deadline.signal]);
      }
    } finally {
      deadline.end();
    }
  }

  get(path: string): TreeNode | undefined {
    return this.nodes.get(path);
  }

  children(path: string): ReadonlySet<string> {
    return this.nodes.children(path);
  }

  pendingReads(isMeant: (path: string) => boolean): Promise<void> | undefined {
    return this.reads.answered((path) => this.nodes.get(path) === undefined && isMeant(path));
  }

  expect(paths: readonly string[]): WriteExpectation {
    const { generation } = this;
    const announced = new Set(paths.filter((path) => this.holds(path) && this.wantsData(path)));
    for (const path of announced) this.expectations.announce(path);
    return {
      applied: (nodes) => {
        for (const { path, node } of nodes) if (announced.delete(path)) this.applied(path, node, generation);
        for (const path of announced) this.readIf(this.expectations.settle(path, 'untouched').mustRead, path);
        announced.clear();
      },
      unknown: () => {
        for (const path of announced) {
          this.expectations.settle(path, 'unknown');
          this.readIf(true, path);
        }
        announced.clear();
      },
    };
  }

  close(): void {
    this.closed = true;
    this.zk.off('state', this.onState);
    this.watch.close();
    this.forgetLoad();
    this.setComplete(false);
  }

  // ---- What the server tells

  private readonly onState = (): void => {
    if (this.zk.state !== 'connected') {
      this.loaded = false;
      this.updateComplete();
    }
  };

  private onEvent({ type, path }: WatchEvent): void {
    if (this.closed) return;
    if (type === 'deleted') {
      if (this.walk !== undefined) this.deletedInLoad.add(path);
      this.expectations.noteEvent(path, type);
      this.reads.deleted(path);
      this.resolveRetry(path);
      this.remove(path);
    } else if (type === 'created' || type === 'changed') {
      if (type === 'created') this.deletedInLoad.delete(path);
      if (!this.wantsData(path)) this.present(path);
      else if (!this.expectations.noteEvent(path, type)) this.reads.request(path);
    }
  }

  /** Reads everything anew: events may have been missed until now. */
  private load(): void {
    if (this.closed) return;
    this.forgetLoad();
    this.generation++;
    this.loaded = false;
    this.updateComplete();
    this.reads = this.newReads();
    const walk = new TreeWalk(this.zk, this.reads, {
      wantsData: this.wantsData,
      onRead: (path, result) => this.read(path, result),
      onPresent: (path) => {
        // The list that it was found in may be older than the event of its deletion.
        if (!this.deletedInLoad.has(path)) this.present(path);
      },
      onChildren: (path, names) => this.listed(path, names),
      onFailure: (path, error, retry) =>
        this.retryLater(path, error, () => {
          this.resolveRetry(path);
          retry();
        }),
      onDone: () => {
        this.walk = undefined;
        this.loaded = this.zk.state === 'connected';
        this.deletedInLoad = new Set();
        this.updateComplete();
      },
    });
    this.walk = walk;
    walk.start(this.root);
  }

  private forgetLoad(): void {
    this.walk?.abandon();
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
    );
    return reads;
  }

  // ---- What becomes of it

  private read(path: string, result: ReadResult): void {
    if (result !== undefined) this.put(path, result.data, result.stat);
    // All data that the tree holds came with earlier answers. A presence may have been told by an event since.
    else if (this.wantsData(path) || this.nodes.get(path)?.generation !== this.generation) this.remove(path);
  }

  private put(path: string, data: Uint8Array, stat: Stat): void {
    const before = this.nodes.get(path);
    if (before !== undefined) {
      if (before.generation === this.generation) {
        if (before.stat.mzxid >= stat.mzxid) return;
      } else if (isSame(before, data, stat)) {
        before.generation = this.generation;
        return;
      }
    }
    this.store(new CachedNode(path, data, stat, this.generation), before);
  }

  private present(path: string): void {
    const before = this.nodes.get(path);
    if (before === undefined) this.store(new CachedNode(path, EMPTY, NO_STAT, this.generation), undefined);
    else before.generation = this.generation;
  }

  private store(node: CachedNode, before: CachedNode | undefined): void {
    this.nodes.put(node);
    this.tell(() => this.listener.onPut(node, before));
  }

  private remove(path: string): void {
    this.nodes.remove(path, (node) => this.tell(() => this.listener.onRemove(node)));
  }

  /** Children as the server lists them; those that this load has not seen otherwise and that are not there are gone. */
  private listed(path: string, names: readonly string[]): void {
    const known = this.nodes.children(path);
    if (known.size === 0) return;
    const listed = new Set(names);
    for (const name of [...known]) {
      const child = childPath(path, name);
      if (!listed.has(name) && this.nodes.get(child)?.generation !== this.generation) this.remove(child);
    }
  }

  private applied(
    path: string,
    node: { readonly data: Uint8Array; readonly stat: Stat } | undefined,
    since: number,
  ): void {
    const { mustRead, gone } = this.expectations.settle(path, 'applied');
    if (this.closed) return;
    if (mustRead || since !== this.generation) this.reads.request(path);
    if (since !== this.generation) return;
    if (node !== undefined) {
      // A deletion that the answer cannot know of came between the answer and this call.
      if (!gone) this.put(path, node.data, node.stat);
    } else if (!mustRead) {
      this.reads.deleted(path);
      this.remove(path);
    }
  }

  private readIf(wanted: boolean, path: string): void {
    if (wanted && !this.closed) this.reads.request(path);
  }

  private holds(path: string): boolean {
    const { root } = this;
    return path === root || root === '/' || (path.startsWith(root) && path.charCodeAt(root.length) === 0x2f);
  }

  // ---- Completeness

  /** Until it succeeds, the tree is not complete. */
  private retryLater(path: string, error: unknown, retry: () => void): void {
    if (isZooKeeperError(error, 'closed')) return;
    if (this.zk.state === 'connected') this.warn(error);
    this.retries.get(path)?.cancel();
    this.retries.set(path, this.clock.schedule(RETRY_MS, retry, { background: true }));
    this.updateComplete();
  }

  private resolveRetry(path: string): void {
    if (this.retries.size === 0) return;
    this.retries.get(path)?.cancel();
    if (this.retries.delete(path)) this.updateComplete();
  }

  private updateComplete(): void {
    this.setComplete(this.loaded && this.retries.size === 0);
  }

  private setComplete(complete: boolean): void {
    if (complete === this.complete) return;
    this.complete = complete;
    this.tell(() => this.listener.onComplete?.(complete));
    if (complete) this.wake();
  }

  private wake(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** The server does not let it be watched: what is here is what was seen last. */
  private fail(error: ZooKeeperError): void {
    this.failure = error;
    this.loaded = false;
    this.forgetLoad();
    this.updateComplete();
    this.warn(error);
    this.wake();
  }

  /** What a listener throws must not keep the tree from being right. */
  private tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.warn(error);
    }
  }

  private warn(error: unknown): void {
    const warning = error instanceof Error ? error : new Error(String(error));
    (this.settings.onWarning ?? warnProcess)(warning);
  }
}

/** Transaction numbers can come again when a server was set back to an older state. */
function isSame(node: CachedNode, data: Uint8Array, stat: Stat): boolean {
  return node.stat.mzxid === stat.mzxid && node.stat.czxid === stat.czxid && Buffer.compare(node.data, data) === 0;
}
