/** Combines the tree caches of a store: complete when all of them are, and informed of every write of this client. */

import type { TreeCache, CallOptions, Stat, TreeListener, WriteExpectation, ZooKeeper } from '@nodepool/zookeeper';
import { treeCache, isZooKeeperError } from '@nodepool/zookeeper';
import { linkSignals, untilAborted, type Clock, type Emitter, type Logger, type Timer } from '@nodepool/core';
import { storeEmitter } from './listeners.js';
import { settleEvents } from './settle-events.js';

const SLASH = 0x2f;
const NOTHING_WRITTEN: readonly Written[] = [];

/** A mirrored part of the server's tree. */
export interface CacheOptions {
  readonly root: string;
  readonly wantsData: (path: string) => boolean;
  /** See `TreeCacheOptions`. */
  readonly isLeaf?: (path: string) => boolean;
  /** See `TreeCacheOptions`. */
  readonly readDelayMs?: (path: string) => number;
  readonly onPut: TreeListener['onPut'];
  readonly onRemove: TreeListener['onRemove'];
  /** While this returns false, the store is not complete even if the cache mirrors the server. Default: true. */
  readonly isUsable?: () => boolean;
  /** The table of the records. Its listeners receive the effects of a write of this client as one change. */
  readonly table?: Pausable;
}

/**
 * Listeners are not notified of changes of the records with these paths from `pause` to `resume`, which receives the
 * content that this client has written.
 */
interface Pausable {
  pause(paths: readonly string[]): void;
  resume(paths: readonly string[], written: readonly Written[]): void;
}

/** The content of a path after a write; `undefined` if the znode was deleted. */
export interface Written {
  readonly path: string;
  readonly node: { readonly data: Uint8Array; readonly stat: Stat } | undefined;
}

interface Cache extends CacheOptions {
  tree: TreeCache | undefined;
  complete: boolean;
}

/** The paths of an announced write that are in the same cache. */
interface Part {
  readonly cache: Cache;
  readonly paths: string[];
  expectation: WriteExpectation | undefined;
  next: Part | undefined;
}

/** An announced write. Its parts are linked, because nearly all writes have one, and lists and iterators are larger. */
class Announcement implements WriteExpectation {
  constructor(private readonly first: Part | undefined) {
    for (let part = first; part !== undefined; part = part.next) {
      const { tree, table } = part.cache;
      table?.pause(part.paths);
      part.expectation = tree?.expect(part.paths);
    }
  }

  applied(nodes: readonly Written[]): void {
    // Each cache ignores the paths of the others.
    for (let part = this.first; part !== undefined; part = part.next) part.expectation?.applied(nodes);
    this.resume(nodes);
  }

  unknown(): void {
    for (let part = this.first; part !== undefined; part = part.next) part.expectation?.unknown();
    this.resume(NOTHING_WRITTEN);
  }

  private resume(written: readonly Written[]): void {
    for (let part = this.first; part !== undefined; part = part.next) part.cache.table?.resume(part.paths, written);
  }
}

export class Caches {
  private readonly caches: Cache[] = [];
  private readonly listeners: Emitter<boolean>;
  private wasComplete = false;
  private readonly closing = new AbortController();
  /** True from a failed read until all caches are complete again. */
  private disturbed = false;

  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    this.listeners = storeEmitter(log);
  }

  add(options: CacheOptions): void {
    this.caches.push({ ...options, tree: undefined, complete: false });
  }

  get complete(): boolean {
    return this.wasComplete;
  }

  isComplete(root: string): boolean {
    return this.caches.some((cache) => cache.root === root && cache.complete);
  }

  start(): void {
    for (const cache of this.caches) {
      cache.tree ??= treeCache(
        this.zooKeeper,
        cache.root,
        {
          onPut: cache.onPut,
          onRemove: cache.onRemove,
          onComplete: (complete) => {
            cache.complete = complete;
            this.update();
          },
        },
        {
          wantsData: cache.wantsData,
          ...(cache.isLeaf === undefined ? {} : { isLeaf: cache.isLeaf }),
          ...(cache.readDelayMs === undefined ? {} : { readDelayMs: cache.readDelayMs }),
          clock: this.clock,
          onWarning: (error) => this.warn(cache.root, error),
        },
      );
    }
  }

  async ready(options?: CallOptions): Promise<void> {
    await Promise.all(
      this.caches.map(({ tree }) => {
        if (tree === undefined) throw new Error('the store has not been started');
        return tree.ready(options);
      }),
    );
  }

  /** Resolves once `complete`, maybe later than `ready`. Rejects on abort, after `timeoutMs`, or on `close`. */
  async completed(options: CallOptions = {}): Promise<void> {
    await this.ready(options);
    if (this.wasComplete) return;
    const { signal, timeoutMs } = options;
    const ending = linkSignals(this.closing.signal, ...(signal === undefined ? [] : [signal]));
    let timer: Timer | undefined;
    let unsubscribe = (): void => undefined;
    const complete = new Promise<void>((resolve, reject) => {
      unsubscribe = this.onComplete((isComplete) => {
        if (isComplete) resolve();
      });
      if (timeoutMs === undefined) return;
      timer = this.clock.schedule(timeoutMs, () =>
        reject(new Error('the caches of ZooKeeper were not complete in time')),
      );
    });
    try {
      await untilAborted(complete, ending.signal);
    } finally {
      unsubscribe();
      timer?.cancel();
      ending.unlink();
    }
  }

  /**
   * Resolves once the caches of the roots have every record that existed before the latest answer of the server, and
   * its listeners have been called.
   */
  async caughtUp(roots: readonly string[], options?: CallOptions): Promise<void> {
    do {
      if (!this.complete) await this.completed(options);
      for (const root of roots) await this.refresh(root);
    } while (!this.complete);
    await settleEvents();
  }

  onComplete(listener: (complete: boolean) => void): () => void {
    return this.listeners.on(listener);
  }

  /** Returns true if the cache has the znode. */
  has(path: string): boolean {
    return this.cacheOf(path)?.tree?.get(path) !== undefined;
  }

  /** Delegates to `TreeCache.pendingReads`. */
  pendingReads(root: string, isMeant: (path: string) => boolean): Promise<void> | undefined {
    return this.cacheOf(root)?.tree?.pendingReads(isMeant);
  }

  /** Delegates to `TreeCache.refresh`. */
  refresh(root: string): Promise<void> | undefined {
    return this.cacheOf(root)?.tree?.refresh();
  }

  /** Delegates to `TreeCache.pendingRead`. */
  pendingRead(path: string): Promise<void> | undefined {
    return this.cacheOf(path)?.tree?.pendingRead(path);
  }

  /** Announces a write, see `TreeCache.expect`. */
  expect(paths: readonly string[]): WriteExpectation {
    let first: Part | undefined;
    let last: Part | undefined;
    for (let index = 0; index < paths.length; index += 1) {
      const path = paths[index] ?? '';
      const cache = this.cacheOf(path);
      if (cache === undefined) continue;
      if (last?.cache === cache) {
        last.paths.push(path);
        continue;
      }
      const part: Part = { cache, paths: [path], expectation: undefined, next: undefined };
      if (last === undefined) first = part;
      else last.next = part;
      last = part;
    }
    return new Announcement(first);
  }

  /** Adds a znode that this client has created; see `TreeCache.created`. */
  created(path: string, node: NonNullable<Written['node']> & { readonly isRecreated?: boolean }): void {
    this.cacheOf(path)?.tree?.created(path, node);
  }

  close(): void {
    this.closing.abort(new Error('the store is closed'));
    for (const { tree } of this.caches) tree?.close();
  }

  /** Logs only the first failed read of a disturbance, which affects many paths and several caches. */
  private warn(root: string, error: Error): void {
    if (!isZooKeeperError(error)) {
      this.log.error('A listener to changes of ZooKeeper failed', error, { root });
      return;
    }
    if (this.disturbed) {
      this.log.debug('A read of ZooKeeper failed; retrying', { root, reason: error.message });
      return;
    }
    this.disturbed = true;
    this.log.warn('ZooKeeper cannot be read; cached records may be stale until it can', {
      root,
      reason: error.message,
    });
  }

  /** Must be called when the result of an `isUsable` changes. */
  update(): void {
    const complete = this.caches.every((cache) => cache.complete && (cache.isUsable?.() ?? true));
    if (complete && this.disturbed) {
      this.disturbed = false;
      this.log.info('ZooKeeper is read again');
    }
    if (complete === this.wasComplete) return;
    this.wasComplete = complete;
    this.listeners.emit(complete);
  }

  private cacheOf(path: string): Cache | undefined {
    const { caches } = this;
    for (let index = 0; index < caches.length; index += 1) {
      const cache = caches[index];
      if (cache === undefined || !path.startsWith(cache.root)) continue;
      const end = cache.root.length;
      if (path.length === end || path.charCodeAt(end) === SLASH) return cache;
    }
    return undefined;
  }
}
