/** Combines the tree caches of a store: complete when all of them are, and informed of every write of this client. */

import {
  treeCache,
  isZooKeeperError,
  type TreeCache,
  type CallOptions,
  type Stat,
  type TreeListener,
  type WriteExpectation,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import type { Emitter, Clock, Logger } from '@nodepool/core';
import { storeEmitter } from './listeners.js';

/** A part of the server's tree that is mirrored. */
export interface CacheOptions {
  readonly root: string;
  readonly wantsData: (path: string) => boolean;
  readonly onPut: TreeListener['onPut'];
  readonly onRemove: TreeListener['onRemove'];
  /** While false, the store does not count as complete although the cache mirrors the server. Default: true. */
  readonly isUsable?: () => boolean;
  /** A write of ours to this path is under way: who listens hears of its effects as one, after `resume`. */
  readonly pause?: (path: string) => void;
  readonly resume?: (path: string) => void;
}

/** What a path holds after a write; `undefined`: it is gone. */
export interface Written {
  readonly path: string;
  readonly node: { readonly data: Uint8Array; readonly stat: Stat } | undefined;
}

interface Cache extends CacheOptions {
  tree: TreeCache | undefined;
  complete: boolean;
}

export class Caches {
  private readonly caches: Cache[] = [];
  private readonly listeners: Emitter<boolean>;
  private wasComplete = false;
  /** A read failed, and not all caches have been complete since. */
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

  onComplete(listener: (complete: boolean) => void): () => void {
    return this.listeners.on(listener);
  }

  /** Whether a znode is known to be there. */
  has(path: string): boolean {
    return this.cacheOf(path)?.tree?.get(path) !== undefined;
  }

  /** See `TreeCache.pendingReads`. */
  pendingReads(root: string, isMeant: (path: string) => boolean): Promise<void> | undefined {
    return this.cacheOf(root)?.tree?.pendingReads(isMeant);
  }

  /** Announces a write, see `TreeCache.expect`. */
  expect(paths: readonly string[]): WriteExpectation {
    const parts = this.caches.flatMap((cache) => {
      const own = paths.filter((path) => isBelow(path, cache.root));
      if (cache.tree === undefined || own.length === 0) return [];
      for (const path of own) cache.pause?.(path);
      return [{ cache, own, expectation: cache.tree.expect(own) }];
    });
    const resume = (): void => {
      for (const { cache, own } of parts) for (const path of own) cache.resume?.(path);
    };
    return {
      applied: (nodes) => {
        for (const { cache, expectation } of parts) {
          expectation.applied(nodes.filter(({ path }) => isBelow(path, cache.root)));
        }
        resume();
      },
      unknown: () => {
        for (const { expectation } of parts) expectation.unknown();
        resume();
      },
    };
  }

  /** Tells of znodes that we have made without knowing their names before. */
  learn(written: readonly Written[]): void {
    this.expect(written.map(({ path }) => path)).applied(written);
  }

  close(): void {
    for (const { tree } of this.caches) tree?.close();
  }

  /** One disturbance concerns many paths and several caches: the first failed read is logged for all of them. */
  private warn(root: string, error: Error): void {
    if (!isZooKeeperError(error)) {
      this.log.error('A listener to changes of ZooKeeper failed', error, { root });
      return;
    }
    if (this.disturbed) {
      this.log.debug('A read of ZooKeeper failed; it is tried again', { root, reason: error.message });
      return;
    }
    this.disturbed = true;
    this.log.warn('ZooKeeper cannot be read; what is known of it may be old until it is', {
      root,
      reason: error.message,
    });
  }

  /** Must be called when an `isUsable` changes. */
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
    return this.caches.find(({ root }) => isBelow(path, root));
  }
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/');
}
