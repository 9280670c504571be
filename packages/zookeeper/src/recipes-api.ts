/**
 * What the recipes promise: the exclusive lock that kazoo's clients understand, an election on top of it, and a tree
 * that mirrors a part of the server. Implementations: `lock.ts`, `election.ts`, `cached-tree.ts`.
 */

import type { CallOptions, Session, Stat, TransactionOp, TransactionResult } from './api.js';

/**
 * A held lock. It is a claim, not a mutex: a process that was paused may hold this object after the lock went to
 * somebody else. So either pass `fence` into the transaction that must only happen under the lock, or write with a
 * version that was read under it.
 */
export interface HeldLock {
  /** The lock directory, e.g. `/nodepool/nodes/0000000001/lock`. */
  readonly path: string;
  /** Our contender. */
  readonly contender: string;
  readonly session: Session;
  /**
   * Aborts with the loss of the session, by `release` and `released`, and, with `watchContender`, when somebody else
   * removed the contender.
   */
  readonly lost: AbortSignal;
  /** Fails a transaction unless the lock is still ours at the moment it is applied. */
  readonly fence: TransactionOp;
  /** The operation that gives the lock up, to be made part of a transaction; call `released` when that was applied. */
  readonly releaseOp: TransactionOp;
  released(): void;
  /**
   * Gives the lock up. Keeps trying across suspensions for as long as the session lives; never leaves the contender
   * behind. Idempotent.
   */
  release(): Promise<void>;
}

export interface LockOptions {
  /** Written into the contender for people to read. Kazoo writes `<host>-<pid>`. */
  readonly identifier?: string;
  /**
   * Notices when somebody else removes the contender while the lock is held, at the price of one read: `lost` then
   * aborts. Default false: `fence` notices it when it matters. For locks that are held for long.
   */
  readonly watchContender?: boolean;
}

/**
 * The exclusive lock of kazoo's recipe: contenders are ephemeral sequential children named
 * `<32 hex digits>__lock__<sequence>`; the lowest sequence among the children whose name contains `__lock__` holds it.
 */
export interface LockRecipe {
  /**
   * Waits in line. Rejects with the signal's reason or at the deadline, leaving no contender behind. Without `timeoutMs`
   * there is no limit to the waiting in line, only to each call that it takes. A missing directory is made, with its
   * parents.
   */
  acquire(path: string, options?: LockOptions & CallOptions): Promise<HeldLock>;
  /**
   * Takes the lock only if nobody contends for it: in one transaction, so that a lost attempt leaves nothing behind.
   * `ops` are applied in that same transaction: all or nothing. Resolves with undefined when somebody contends.
   * Rejects when one of `ops` fails (then nothing was taken; `operationIndex` is relative to `ops`).
   *
   * How: an empty lock directory is deleted and made again in the transaction (deletion fails when it has children),
   * a missing one is made, with its parents. `exists` (e.g. from a cache; default true) says which to try first; the other
   * is tried on a miss. So any child of the directory counts as contending.
   *
   * When the outcome of the transaction is unknown (`OutcomeUnknownError`), the lock is given up if it was taken, as soon
   * as the connection allows, but `ops` may have been applied: read again.
   */
  tryAcquire(
    path: string,
    options?: LockOptions & CallOptions & { readonly exists?: boolean; readonly ops?: readonly TransactionOp[] },
  ): Promise<{ readonly lock: HeldLock; readonly results: readonly TransactionResult[] } | undefined>;
  /**
   * As `tryAcquire`, for several locks at once: all or none. `ops` come before or after the locks' own operations
   * without a guaranteed order between the two groups, but in order among themselves; a lock's directory may be below a znode
   * that `before` creates. The `operationIndex` of an error counts through `before` and on through `after`.
   */
  tryAcquireAll(
    locks: readonly { readonly path: string; readonly exists?: boolean }[],
    options?: LockOptions &
      CallOptions & { readonly before?: readonly TransactionOp[]; readonly after?: readonly TransactionOp[] },
  ): Promise<
    | {
        readonly locks: readonly HeldLock[];
        readonly before: readonly TransactionResult[];
        readonly after: readonly TransactionResult[];
      }
    | undefined
  >;
}

/** Candidate for an office that one process holds at a time. Same znodes as a lock. */
export interface Election {
  /** True while this process holds the office. */
  readonly elected: boolean;
  /** Runs for office again and again until `close`; `onElected` gets a signal that aborts when the office is lost. */
  run(onElected: (term: AbortSignal) => Promise<void> | void): void;
  close(): Promise<void>;
}

/** A znode as the tree knows it. */
export interface TreeNode {
  readonly path: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

export interface TreeListener {
  /** A znode appeared or its data changed. `before` is what the tree had. Called synchronously, in order. */
  onPut(node: TreeNode, before: TreeNode | undefined): void;
  onRemove(node: TreeNode): void;
  /**
   * The tree became complete (also after each new connection), or, with false, stopped being known to be.
   * While incomplete it answers from what it has.
   */
  onComplete?(complete: boolean): void;
}

/** Options of a cached tree. */
export interface TreeCacheOptions {
  /**
   * Whether the data of a znode is wanted, by path. For others (e.g. locks) only the presence is kept: `data` is empty
   * and no read is made for a change. Default: all.
   */
  readonly wantsData?: (path: string) => boolean;
}

/**
 * Mirrors the znodes below (and including) a root from one recursive watch. Eventually equal to the server's; never
 * behind an answer that the same client has seen for the same path if `wrote` is told of it.
 */
export interface TreeCache {
  readonly root: string;
  readonly complete: boolean;
  /** Resolves once complete. Rejects when it never will be, because the server is too old to be watched (before 3.6). */
  ready(options?: CallOptions): Promise<void>;
  get(path: string): TreeNode | undefined;
  /** Names of the children of a path, unordered; empty when unknown. */
  children(path: string): ReadonlySet<string>;
  /**
   * Of what was made before the last answer that this client got, the tree knows at least the paths; what they hold may
   * still be on its way. Resolves when that has come for these paths (or they are gone); undefined: it is all here. Says
   * nothing unless the tree is complete, before and after.
   */
  pendingReads(isMeant: (path: string) => boolean): Promise<void> | undefined;
  /**
   * Announces a versioned write, creation or deletion of these paths by this client before it is issued; the tree then
   * does not read the znode for the events that the write causes, but takes what `settle` says.
   * Call exactly one of the two functions when the outcome is known; `unknown` makes the tree read.
   */
  expect(paths: readonly string[]): WriteExpectation;
  close(): void;
}

export interface WriteExpectation {
  /** The write was applied: what the paths now hold (undefined: removed). Paths that were announced but are not named were not touched. */
  applied(
    nodes: readonly {
      readonly path: string;
      readonly node: { readonly data: Uint8Array; readonly stat: Stat } | undefined;
    }[],
  ): void;
  /** It was not applied, or nobody knows: events that came meanwhile are read as usual, all paths are read again. */
  unknown(): void;
}
