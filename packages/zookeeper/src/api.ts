/**
 * The interface of a ZooKeeper client: what `connect` (the real client) and `SimulatedZooKeeper` (in memory, on a
 * virtual clock) both provide, and what the recipes (lock, election, cached tree) are built on.
 *
 * Guarantees, as the server gives them to one session (ZooKeeper Programmer's Guide, "Consistency Guarantees"):
 * requests are answered in the order in which they were issued; a watch event of a change is delivered before any
 * answer that reflects that change; events are delivered in the order of the changes. So an answer to a read that was
 * issued after an event arrived is at least as new as the event.
 */

import type { ZooKeeperError } from './errors.js';

/** Metadata of a znode. Zxids and session ids are 64 bits wide, hence `bigint`. Times are milliseconds since the epoch. */
export interface Stat {
  /** Transaction that created the znode. */
  readonly czxid: bigint;
  /** Transaction that last changed its data. */
  readonly mzxid: bigint;
  readonly ctime: number;
  readonly mtime: number;
  /** Number of changes of the data: what versioned writes are compared with. */
  readonly version: number;
  /** Number of changes (creations and deletions) of its children. */
  readonly cversion: number;
  readonly aversion: number;
  /** Session that owns the znode when it is ephemeral, else 0n. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  /** Transaction that last changed its list of children. */
  readonly pzxid: bigint;
}

/** Permission bits, as in ZooKeeper's `ZooDefs.Perms`. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

export interface Acl {
  readonly permissions: number;
  readonly scheme: string;
  readonly id: string;
}

/** Who the server takes a client for, in one scheme, e.g. `digest` and the user's name, or `ip` and the address. */
export interface Identity {
  readonly scheme: string;
  readonly user: string;
}

/** Everybody may do everything: the default at creation. */
export const OPEN_ACL: readonly Acl[] = [{ permissions: Permission.all, scheme: 'world', id: 'anyone' }];

export type CreateMode =
  | 'persistent'
  | 'persistent-sequential'
  | 'ephemeral'
  | 'ephemeral-sequential'
  /** Removed by the server some time after its last child is gone. */
  | 'container'
  /** Removed by the server when unmodified and childless for `ttlMs`. The server must have TTL nodes enabled. */
  | 'persistent-ttl'
  | 'persistent-sequential-ttl';

export interface CreateOptions {
  /** Default `persistent`. */
  readonly mode?: CreateMode;
  /** Default: open to everybody. */
  readonly acl?: readonly Acl[];
  /** Required by, and only allowed with, the `-ttl` modes. */
  readonly ttlMs?: number;
}

export interface CallOptions {
  /** Stops waiting. The outcome of a write that was already sent is then unknown (`OutcomeUnknownError`). */
  readonly signal?: AbortSignal;
  /** Milliseconds until the call is given up as by `signal`. Default: the client's `operationTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** Change of one znode. The path is relative to the client's chroot. */
export interface WatchEvent {
  readonly type: 'created' | 'deleted' | 'changed' | 'children' | 'watch-removed';
  readonly path: string;
}

/**
 * A persistent watch. Its events are delivered synchronously, in order. It survives reconnections and new sessions
 * (it is set again), but events of the time in between are lost: `onReset` tells that from now on events flow (again)
 * and what was read before must be read again. It is also called when the watch was set for the first time.
 */
export interface WatchListener {
  onEvent(event: WatchEvent): void;
  onReset?(): void;
  /**
   * The server refuses to set the watch, which is closed by that; other watches and calls are not affected. Servers
   * older than 3.6 do so with code `unimplemented`. Without this method it becomes a `warning` of the client.
   */
  onError?(error: ZooKeeperError): void;
}

/**
 * What a one-shot watch waits for: `data`: set by `exists` and `get`; `children`: set by `children`; `any`: either.
 */
export type WatchKind = 'data' | 'children' | 'any';

export interface PersistentWatch {
  readonly path: string;
  readonly mode: 'persistent' | 'persistent-recursive';
  /** Removes the watch; idempotent. */
  close(): void;
}

/**
 * Where the client stands.
 * - `connecting`: no session yet, or the last one expired and a new one is being made.
 * - `connected`: the session is confirmed by a server.
 * - `suspended`: the connection is lost; the session may still be resumed.
 * - `closed`: `close` was called, or the client gave up for good (authentication failed).
 */
export type ConnectionState = 'connecting' | 'connected' | 'suspended' | 'closed';

/**
 * One session with the ensemble. When it is lost, the client makes a new one by itself; whatever hangs on the session
 * (ephemerals, locks) hangs on this object, never on the client.
 */
export interface Session {
  readonly id: bigint;
  /** As negotiated with the server. */
  readonly timeoutMs: number;
  /**
   * Aborts when the session is lost: the server said that it expired, or the local timer says that it must have (also
   * while no server can be reached), or the client was closed. The reason is a `SessionLostError`.
   */
  readonly lost: AbortSignal;
  /**
   * True while a server has confirmed the session and the connection has not been lost since. False: start no side
   * effect that relies on a lock of this session.
   */
  readonly confirmed: boolean;
  /**
   * True when it was made at a server that only serves reads, because that has lost the rest of its ensemble (option
   * `readOnly`). Writes then fail with code `not-read-only`. Never changes: as soon as a server is found that takes
   * writes, this session is lost and replaced by one there.
   */
  readonly readOnly: boolean;
}

export interface ZooKeeperEvents {
  /** The state changed. */
  state: [state: ConnectionState];
  /** A new session was made (not: an old one resumed). */
  session: [session: Session];
  /** The session was resumed after a suspension. */
  resumed: [session: Session];
  /** A session was lost. */
  lost: [session: Session, error: ZooKeeperError];
  /** Something went wrong that no call reports: a connection attempt, an unknown answer. For the log. */
  warning: [error: Error];
}

/** One operation of a transaction. Paths are relative to the chroot. `version` defaults to -1 = any. */
export type TransactionOp =
  | { readonly type: 'create'; readonly path: string; readonly data?: Uint8Array; readonly options?: CreateOptions }
  | { readonly type: 'delete'; readonly path: string; readonly version?: number }
  | { readonly type: 'set'; readonly path: string; readonly data: Uint8Array; readonly version?: number }
  /** The transaction fails unless the znode exists and has this version. */
  | { readonly type: 'check'; readonly path: string; readonly version?: number };

/** Result of the operation of a transaction at the same index. `stat` is missing only when the server sent none. */
export type TransactionResult =
  | { readonly type: 'create'; readonly path: string; readonly stat?: Stat }
  | { readonly type: 'delete' }
  | { readonly type: 'set'; readonly stat: Stat }
  | { readonly type: 'check' };

/** One read of a transaction of reads. Paths are relative to the chroot. */
export interface ReadOp {
  readonly type: 'get' | 'children';
  readonly path: string;
}

/** Result of the read at the same index; one that fails does not fail the others. */
export type ReadResult =
  | { readonly type: 'get'; readonly data: Uint8Array; readonly stat: Stat }
  | { readonly type: 'children'; readonly children: readonly string[] }
  | { readonly type: 'error'; readonly error: ZooKeeperError };

/** Numbers for metrics; all are totals since the client was made unless said otherwise. */
export interface ZooKeeperCounters {
  /** Requests sent, by kind; a transaction counts once, under `multi`. Pings are not counted. */
  readonly requests: Readonly<Record<string, number>>;
  /** Requests sent that can change data (create, delete, set, setAcl, multi). */
  readonly writes: number;
  readonly watchEvents: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Requests without an answer at this moment. */
  readonly inFlight: number;
  /** Calls that are not answered at this moment, sent or not: what `maxPendingCalls` limits. */
  readonly pendingCalls: number;
  /** Bytes of their requests: what `maxPendingBytes` limits. */
  readonly pendingBytes: number;
  readonly connects: number;
}

/**
 * A client. All paths are absolute and relative to the chroot. Every call rejects with a `ZooKeeperError`:
 * - the server's answer as a subclass (`NoNodeError`, `NodeExistsError`, `BadVersionError`, `NotEmptyError`, …),
 * - `ConnectionLostError`: the call was not sent, or it only reads: it took no effect,
 * - `OutcomeUnknownError`: a write was sent and its answer was lost: it may have taken effect,
 * - `OverloadedError`: too many calls wait for their answers; it was not sent,
 * - `SessionLostError`, `ClosedError`, `TimeoutError`, `InvalidArgumentError`.
 *
 * A call that is issued while the client is `connecting` or `suspended` waits for the connection until its deadline,
 * unless `options.signal` says otherwise. A call bound to a session (see `Lock`) fails at once instead.
 */
export interface ZooKeeper {
  readonly state: ConnectionState;
  /** The present session; undefined until the first one, and between the loss of one and the next. */
  readonly session: Session | undefined;
  readonly counters: ZooKeeperCounters;
  /**
   * False while the calls that wait for their answers are more than half of what is allowed (`maxPendingCalls`,
   * `maxPendingBytes`). Calls are accepted until all of it is used, then refused with `OverloadedError`.
   */
  readonly writable: boolean;
  /** Resolves once `writable` is true, at once if it is. Rejects when closed, aborted, or at the deadline. */
  drained(options?: CallOptions): Promise<void>;

  on<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this;
  off<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this;

  /** Resolves with the session once there is a confirmed one. Rejects when closed or aborted. */
  connected(options?: CallOptions): Promise<Session>;

  /** Creates a znode; resolves with its path (with the sequence number, if it has one) and stat. */
  create(
    path: string,
    data?: Uint8Array,
    options?: CreateOptions & CallOptions,
  ): Promise<{ readonly path: string; readonly stat: Stat }>;
  delete(path: string, options?: { version?: number } & CallOptions): Promise<void>;
  /** Undefined when there is no such znode. `watch` is told once of the next creation, change or deletion. */
  exists(path: string, options?: { watch?: (event: WatchEvent) => void } & CallOptions): Promise<Stat | undefined>;
  get(
    path: string,
    options?: { watch?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<{ readonly data: Uint8Array; readonly stat: Stat }>;
  set(path: string, data: Uint8Array, options?: { version?: number } & CallOptions): Promise<Stat>;
  children(
    path: string,
    options?: { watch?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<{ readonly children: readonly string[]; readonly stat: Stat }>;
  /** Resolves once this server has caught up with everything that was committed before the call. */
  sync(path: string, options?: CallOptions): Promise<void>;
  /**
   * All operations, or none. Rejects with the `ZooKeeperError` of the operation that failed; its `operationIndex` tells
   * which.
   */
  transaction(ops: readonly TransactionOp[], options?: CallOptions): Promise<readonly TransactionResult[]>;
  getAcl(path: string, options?: CallOptions): Promise<{ readonly acl: readonly Acl[]; readonly stat: Stat }>;
  setAcl(path: string, acl: readonly Acl[], options?: { version?: number } & CallOptions): Promise<Stat>;

  /**
   * Reads all as of one moment: no change comes between them. A read that fails does so by itself, in its result.
   * Servers 3.6 and newer; older ones reject it with code `unimplemented`.
   */
  readTransaction(ops: readonly ReadOp[], options?: CallOptions): Promise<readonly ReadResult[]>;
  /** Number of all znodes below a path, at any depth. Servers 3.6 and newer; older ones: code `unimplemented`. */
  countDescendants(path: string, options?: CallOptions): Promise<number>;
  /**
   * Paths of this session's ephemeral znodes that start with `prefix` (default `/`). Servers 3.6 and newer; older ones:
   * code `unimplemented`.
   */
  ephemerals(prefix?: string, options?: CallOptions): Promise<readonly string[]>;
  /** Who the server takes this client for. Servers 3.7 and newer; older ones reject it with code `unimplemented`. */
  whoAmI(options?: CallOptions): Promise<readonly Identity[]>;
  /**
   * Adds credentials, e.g. of scheme `digest` and `user:password`, for this connection and all that follow. Calls that
   * are made afterwards have them. Rejects with code `auth-failed` when the server does not take them: it then closes
   * the connection, and the client makes another one without them. A caller that gives up waiting does not take them
   * back.
   */
  addAuth(scheme: string, auth: string | Uint8Array, options?: CallOptions): Promise<void>;
  /**
   * Replaces the list of servers (see `ClientOptions.servers`), without a chroot or with the same one. The session stays
   * the same. When the server that is connected to is not in the new list, it is left for one that is, after what was
   * sent to it is answered. Throws `InvalidArgumentError` when the list is wrong.
   */
  updateServers(servers: string | readonly string[]): void;

  /**
   * Removes one-shot watches at a path: all of a kind (default `any`), or those of one `listener`. Each listener is told
   * `watch-removed` before this resolves. Rejects with code `no-watcher` when there is none. A persistent watch is
   * removed by its own `close`.
   */
  removeWatches(
    path: string,
    options?: { readonly kind?: WatchKind; readonly listener?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<void>;
  /** Adds a persistent watch; returns at once, `onReset` tells when it is set. Servers 3.6 and newer; see `onError`. */
  watch(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch;

  /** Ends the session (its ephemerals go at once) and rejects what is pending with `ClosedError`. Idempotent. */
  close(): Promise<void>;
}
