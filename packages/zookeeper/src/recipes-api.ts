/**
 * Interfaces of the recipes: an exclusive lock compatible with kazoo's, an election based on it, and a cache of a
 * subtree. Implementations: `lock.ts`, `election.ts`, `tree-cache.ts`.
 */

import type { CallOptions, Session, Stat, TransactionOp, TransactionResult } from './api.js';

/**
 * A held lock. A paused process may still have this object after another client acquired the lock. Therefore either add
 * `fence` to every transaction that needs the lock, or write with a version that was read under the lock.
 *
 * @example
 * const lock = await locks.acquire('/app/lock');
 * try {
 *   await zk.transaction([lock.fence, { type: 'set', path: '/app/state', data }]);
 * } finally {
 *   await lock.release();
 * }
 */
export interface HeldLock {
  /** The lock directory, e.g. `/nodepool/nodes/0000000001/lock`. */
  readonly path: string;
  /** Path of this client's contender. */
  readonly contender: string;
  /** The session that owns the contender. For a persistent lock, the one in which it was acquired or adopted. */
  readonly session: Session;
  /** True if the lock survives its session and its process, see `TryLockOptions.owner`. */
  readonly persistent: boolean;
  /** False once `lost` has aborted. Costs less than `lost`, whose signal is created when it is read first. */
  readonly held: boolean;
  /**
   * Aborts when the session is lost (unless the lock is persistent), by `release` and `released`, and, with
   * `watchContender`, when another client deleted or adopted the contender.
   */
  readonly lost: AbortSignal;
  /** Fails a transaction that is applied after the lock was lost. */
  readonly fence: TransactionOp;
  /** Releases the lock as part of a transaction. Call `released` once the transaction was applied. */
  readonly releaseOp: TransactionOp;
  /** Marks the lock as released, without a call to the server. */
  released(): void;
  /**
   * Releases the lock. Retries until the contender is deleted or the session is lost; for a persistent lock, until the
   * client is closed. Idempotent; never rejects.
   */
  release(): Promise<void>;
}

export interface LockOptions {
  /** Data of the contender, for operators. kazoo writes `<host>-<pid>`. */
  readonly identifier?: string;
  /**
   * Aborts `lost` if another client deletes or adopts the contender, at the cost of one read per lock. For locks that
   * are held long; otherwise `fence` detects the loss. Default false.
   */
  readonly watchContender?: boolean;
}

export interface TryLockOptions extends LockOptions {
  /**
   * Name of the owner of a persistent lock, which replaces `identifier`. The contender is a persistent znode, as with
   * `ephemeral=False` in kazoo: the lock survives its session and its process, and `adopt` finds it again. After an
   * `OutcomeUnknownError` the lock may be held: `adopt` tells. Default: an ephemeral contender.
   */
  readonly owner?: string;
}

export interface AdoptOptions extends LockOptions {
  /**
   * If true, processes that hold the lock lose it: their fences fail, and their `lost` aborts with `watchContender`. If
   * false, they share it, and the first of them that releases it ends it for all. Default true.
   */
  readonly takeOver?: boolean;
}

/** The first contender of a lock. */
export interface LockHolder {
  /** Path of the contender. */
  readonly contender: string;
  /** The data of the contender: the owner of a persistent lock, by convention `<host>-<pid>` of others. */
  readonly identifier: string;
  /** True if the contender is a persistent znode, which no lost session deletes. */
  readonly persistent: boolean;
  /** The session that owns the contender; 0 if it is persistent. */
  readonly sessionId: bigint;
  /** Version of the contender's data. */
  readonly version: number;
}

/**
 * The exclusive lock of kazoo's recipe (`kazoo.recipe.lock`). Contenders are ephemeral sequential children named
 * `<32 hex digits>__lock__<sequence>`. The contender with the lowest sequence holds the lock.
 */
export interface LockRecipe {
  /**
   * Acquires the lock, waiting for earlier contenders. Creates a missing lock directory with its ancestors. On abort
   * and at the deadline it rejects and deletes its contender; without `timeoutMs` it waits without limit.
   */
  acquire(path: string, options?: LockOptions & CallOptions): Promise<HeldLock>;
  /**
   * Acquires the lock and applies `ops` in one transaction. Resolves with undefined, changing nothing, if the lock
   * directory has any child. Rejects, changing nothing, if one of `ops` fails; `operationIndex` counts within `ops`.
   *
   * The transaction deletes and recreates an empty lock directory, because the deletion fails if it has children, or
   * creates a missing one. `exists` (e.g. from a cache, default true) selects which of the two to try first.
   *
   * After an `OutcomeUnknownError` the lock is released in the background if it was acquired, but `ops` may have been
   * applied: read again.
   *
   * @example
   * const acquired = await locks.tryAcquire('/app/lock', { ops: [{ type: 'check', path: '/app', version: 3 }] });
   * if (acquired === undefined) return; // another client holds the lock
   */
  tryAcquire(
    path: string,
    options?: TryLockOptions & CallOptions & { readonly exists?: boolean; readonly ops?: readonly TransactionOp[] },
  ): Promise<{ readonly lock: HeldLock; readonly results: readonly TransactionResult[] } | undefined>;
  /**
   * Acquires several locks in one transaction: all or none, as `tryAcquire` does. The operations of `before` precede
   * those of the locks, so a lock directory may be below a znode that `before` creates; those of `after` follow. The
   * `operationIndex` of an error counts through `before` and then `after`.
   *
   * `isNew`: `before` creates the parent of the lock directory. If that is missing nevertheless, the call rejects with
   * `NoNodeError` and creates nothing. `uniqueHex`: the unique part of the contender's name, 32 hexadecimal digits
   * (default: random). With it, the path of the contender is known before (`firstContender`).
   */
  tryAcquireAll(
    locks: readonly {
      readonly path: string;
      readonly exists?: boolean;
      readonly isNew?: boolean;
      readonly uniqueHex?: string;
    }[],
    options?: TryLockOptions &
      CallOptions & { readonly before?: readonly TransactionOp[]; readonly after?: readonly TransactionOp[] },
  ): Promise<
    | {
        readonly locks: readonly HeldLock[];
        readonly before: readonly TransactionResult[];
        readonly after: readonly TransactionResult[];
      }
    | undefined
  >;
  /**
   * Adopts the persistent lock of an owner, which this or another process acquired. Resolves with undefined if the
   * first contender is not persistent or has another owner.
   *
   * @example
   * const lock = await locks.adopt('/app/lock', 'my-service');
   */
  adopt(path: string, owner: string, options?: AdoptOptions & CallOptions): Promise<HeldLock | undefined>;
}

/** A leader election: at most one process is elected at a time. Uses the znodes of a lock. */
export interface Election {
  /** True while this process is the leader. */
  readonly elected: boolean;
  /** Takes part in the election until `close`. The signal of `onElected` aborts when the leadership is lost. */
  run(onElected: (term: AbortSignal) => Promise<void> | void): void;
  /** Resigns. Resolves once `onElected` has settled. */
  close(): Promise<void>;
}

/** A cached znode. */
export interface TreeNode {
  readonly path: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

/** Receives the changes of a tree cache, synchronously and in order. */
export interface TreeListener {
  /** A znode was created or its data changed. `before` is the previous entry of the cache. */
  onPut(node: TreeNode, before: TreeNode | undefined): void;
  /** A znode was deleted. `isCurrent` is false if `node` may lack changes that preceded the deletion. */
  onRemove(node: TreeNode, isCurrent: boolean): void;
  /** `TreeCache.complete` changed. It becomes false when the connection is lost and true after the next load. */
  onComplete?(complete: boolean): void;
}

/** Options of a tree cache. */
export interface TreeCacheOptions {
  /**
   * Returns true if the cache shall hold the data of the znode. It stores other znodes (e.g. locks) with empty `data`.
   * Default: all data.
   */
  readonly wantsData?: (path: string) => boolean;
  /**
   * Returns true if a znode whose data is not wanted has no children, e.g. because it is ephemeral. The cache then does
   * not list them when it loads. Default: no such znodes.
   */
  readonly isLeaf?: (path: string) => boolean;
  /**
   * Returns the time (ms) for which the data of a created or changed znode may be missing or outdated, so that one
   * read serves several changes. It is called once all events that arrived together are applied. `pendingReads` and
   * `refresh` do not wait for this time. Default: 0 for all znodes.
   */
  readonly readDelayMs?: (path: string) => number;
}

/**
 * A cache of a znode and all its descendants, kept up to date by one persistent recursive watch (kazoo's and Curator's
 * `TreeCache`). Eventually consistent with the server. An announced write (`expect`) is visible in it at once.
 *
 * @example
 * const tree = treeCache(zk, '/app', { onPut: (node) => console.log(node.path), onRemove: () => undefined });
 * await tree.ready();
 * tree.get('/app/config')?.data;
 */
export interface TreeCache {
  readonly root: string;
  /** True if every znode was loaded since the last connection. While false, the cache may be stale. */
  readonly complete: boolean;
  /**
   * Resolves once the cache is complete. Rejects if the server is older than 3.6, which has no recursive watches, and
   * when the client is closed.
   */
  ready(options?: CallOptions): Promise<void>;
  get(path: string): TreeNode | undefined;
  /** Returns the names of the present children of a path, unordered; empty if the path is unknown. */
  children(path: string): ReadonlySet<string>;
  /**
   * Returns undefined if no read of a matching path that is missing from the cache is pending, else a promise that
   * resolves when those reads are done. A complete cache then holds every matching znode that existed before this
   * client's latest answer.
   */
  pendingReads(matches: (path: string) => boolean): Promise<void> | undefined;
  /**
   * Returns undefined if no read of this znode is pending. Otherwise, returns a promise that resolves once the result
   * is in the cache, or the read has failed or become void. The read waits for as long as `readDelayMs` returns now.
   */
  pendingRead(path: string): Promise<void> | undefined;
  /** Returns undefined if no read is pending, else a promise that resolves when all are done. Ends their delays. */
  refresh(): Promise<void> | undefined;
  /**
   * Announces that this client is about to create, write (with a version) or delete these paths. The cache then takes
   * the result from `applied` instead of reading the znodes after their events. Call exactly one of the two functions
   * of the result.
   */
  expect(paths: readonly string[]): WriteExpectation;
  /**
   * Adds a znode that this client has created without announcing it, unless it is known to be deleted since. Called
   * before the event loop continues, it replaces the read that follows the event of the creation. `isRecreated`: the
   * same transaction had created and deleted the path before.
   */
  created(path: string, node: { readonly data: Uint8Array; readonly stat: Stat; readonly isRecreated?: boolean }): void;
  close(): void;
}

/** An announced write. */
export interface WriteExpectation {
  /**
   * The write was applied: `node` is the new state, or undefined for a deletion. Announced paths not listed are
   * unchanged.
   */
  applied(
    nodes: readonly {
      readonly path: string;
      readonly node: { readonly data: Uint8Array; readonly stat: Stat } | undefined;
    }[],
  ): void;
  /** The write failed or its outcome is unknown: the cache reads all announced paths again. */
  unknown(): void;
}
