/**
 * The interface of a ZooKeeper client. `connect` and `SimulatedZooKeeperServer.connect` implement it; the recipes
 * (lock, election, tree cache) use it.
 *
 * A session has these guarantees (ZooKeeper Programmer's Guide, "Consistency Guarantees"):
 * - The server answers requests in the order in which the client issued them.
 * - A watch event arrives before any answer that reflects its change.
 * - Events arrive in the order of the changes. A read that is issued after an event is at least as new as the event.
 */

import type { ZooKeeperError } from './errors.js';

/** Metadata of a znode. Transaction ids (zxids) are 64 bits wide. Times are milliseconds since the epoch. */
export interface Stat {
  /** Id of the transaction that created the znode. */
  readonly czxid: bigint;
  /** Id of the transaction that last changed the data. */
  readonly mzxid: bigint;
  readonly ctime: number;
  readonly mtime: number;
  /** Number of changes of the data. Versioned writes compare with it. */
  readonly version: number;
  /** Number of creations and deletions of children. */
  readonly cversion: number;
  /** Number of changes of the access control list. */
  readonly aversion: number;
  /** Id of the session that owns an ephemeral znode; 0n for other znodes. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  /** Id of the transaction that last changed the list of children. */
  readonly pzxid: bigint;
}

/** Permission bits, as in ZooKeeper's `ZooDefs.Perms`. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** One entry of an access control list, e.g. `{ permissions: Permission.read, scheme: 'world', id: 'anyone' }`. */
export interface Acl {
  /** Sum of `Permission` bits. */
  readonly permissions: number;
  readonly scheme: string;
  readonly id: string;
}

/** An identity of a client in one scheme, e.g. `digest` and the user's name, or `ip` and the address. */
export interface Identity {
  readonly scheme: string;
  readonly user: string;
}

/** Allows every client everything. The default of `create`. */
export const OPEN_ACL: readonly Acl[] = [{ permissions: Permission.all, scheme: 'world', id: 'anyone' }];

export type CreateMode =
  | 'persistent'
  | 'persistent-sequential'
  | 'ephemeral'
  | 'ephemeral-sequential'
  /** The server deletes it some time after its last child was deleted. */
  | 'container'
  /** The server deletes it when it was childless and unmodified for `ttlMs`. The server must have TTL nodes enabled. */
  | 'persistent-ttl'
  | 'persistent-sequential-ttl';

export interface CreateOptions {
  /** Default `persistent`. */
  readonly mode?: CreateMode;
  /** Default: `OPEN_ACL`. */
  readonly acl?: readonly Acl[];
  /** Milliseconds. Required by the `-ttl` modes, refused with any other. */
  readonly ttlMs?: number;
}

export interface CallOptions {
  /** Ends the wait. A write that was sent already then rejects with `OutcomeUnknownError`. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the call rejects with `TimeoutError`. Default: the client's `operationTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** A change of one znode. The path is relative to the client's chroot. */
export interface WatchEvent {
  readonly type: 'created' | 'deleted' | 'changed' | 'children' | 'watch-removed';
  readonly path: string;
}

/**
 * The listener of a persistent watch. Events arrive synchronously and in order. The client sets the watch again after a
 * reconnection and in a new session, but events of the time in between are lost.
 */
export interface WatchListener {
  onEvent(event: WatchEvent): void;
  /** Called each time the watch was set, also the first time. Data that was read before may be stale: read it again. */
  onReset?(): void;
  /**
   * Called when the server refused the watch, which is then closed. Servers older than 3.6 refuse with code
   * `unimplemented`. Without this method the error becomes a `warning` of the client.
   */
  onError?(error: ZooKeeperError): void;
}

/** Kind of a one-shot watch: `exists` and `get` set `data`, `children` sets `children`; `any` means both. */
export type WatchKind = 'data' | 'children' | 'any';

export interface PersistentWatch {
  readonly path: string;
  readonly mode: 'persistent' | 'persistent-recursive';
  /** Removes the watch. Idempotent. */
  close(): void;
}

/**
 * State of a client.
 * - `connecting`: the client has no session and is creating one.
 * - `connected`: a server has confirmed the session.
 * - `suspended`: the connection is lost; the session may still be resumed.
 * - `closed`: `close` was called, or authentication failed. Final.
 */
export type ConnectionState = 'connecting' | 'connected' | 'suspended' | 'closed';

/**
 * One session with the ensemble. After its loss the client creates a new session, but ephemeral znodes and locks belong
 * to the session that created them.
 */
export interface Session {
  readonly id: bigint;
  /** Milliseconds, as negotiated with the server. */
  readonly timeoutMs: number;
  /**
   * Aborts with a `SessionLostError` when a server reports that the session expired, when no server confirmed it within
   * its timeout, or when the client is closed.
   */
  readonly lost: AbortSignal;
  /**
   * True while the connection to the server that confirmed the session lasts. While it is false, start no side effect
   * that relies on a lock of this session.
   */
  readonly confirmed: boolean;
  /**
   * True for a session with a server that has lost its quorum and only serves reads (option `readOnly`). Writes then
   * reject with code `not-read-only`. Never changes: once the client finds a read-write server, it replaces the
   * session.
   */
  readonly readOnly: boolean;
}

/** Events of a client, with the arguments of their listeners. */
export interface ZooKeeperEvents {
  /** The state changed. */
  state: [state: ConnectionState];
  /** A new session was created. */
  session: [session: Session];
  /** The session was resumed after its connection was lost. */
  resumed: [session: Session];
  /** A session was lost. */
  lost: [session: Session, error: ZooKeeperError];
  /** A problem that no call reports, such as a failed connection attempt. For the log. */
  warning: [error: Error];
}

/** One operation of a transaction. Paths are relative to the chroot. `version` defaults to -1, which matches any. */
export type TransactionOp =
  | { readonly type: 'create'; readonly path: string; readonly data?: Uint8Array; readonly options?: CreateOptions }
  | { readonly type: 'delete'; readonly path: string; readonly version?: number }
  | { readonly type: 'set'; readonly path: string; readonly data: Uint8Array; readonly version?: number }
  /** The transaction fails unless the znode exists and has this version. */
  | { readonly type: 'check'; readonly path: string; readonly version?: number };

/** Result of the operation at the same index. A server may send no `stat` for a creation. */
export type TransactionResult =
  | { readonly type: 'create'; readonly path: string; readonly stat?: Stat }
  | { readonly type: 'delete' }
  | { readonly type: 'set'; readonly stat: Stat }
  | { readonly type: 'check' };

/** One read of a read transaction. Paths are relative to the chroot. */
export interface ReadOp {
  readonly type: 'get' | 'children';
  readonly path: string;
}

/** Result of the read at the same index. The failure of one read does not fail the others. */
export type ReadResult =
  | { readonly type: 'get'; readonly data: Uint8Array; readonly stat: Stat }
  | { readonly type: 'children'; readonly children: readonly string[] }
  | { readonly type: 'error'; readonly error: ZooKeeperError };

/** Numbers for metrics: totals since the client was created, unless stated otherwise. */
export interface ZooKeeperCounters {
  /** Requests sent, by kind; a transaction counts once, under `multi`. Pings are not counted. */
  readonly requests: Readonly<Record<string, number>>;
  /** Requests sent that can change data (create, delete, set, setAcl, multi). */
  readonly writes: number;
  readonly watchEvents: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Gauge: requests that were sent and not answered yet. */
  readonly inFlight: number;
  /** Gauge: unanswered calls, sent or not. `maxPendingCalls` limits them. */
  readonly pendingCalls: number;
  /** Gauge: bytes of the requests of unanswered calls. `maxPendingBytes` limits them. */
  readonly pendingBytes: number;
  /** Sessions created or resumed. */
  readonly connects: number;
}

/**
 * A ZooKeeper client. Paths start with a slash and are relative to the chroot. A call without a connection waits for
 * one until its deadline. Every call rejects with a `ZooKeeperError`:
 * - `NoNodeError`, `NodeExistsError`, `BadVersionError`, `NotEmptyError`, …: the server refused the call.
 * - `ConnectionLostError`: the call took no effect, because it was not sent or only reads.
 * - `OutcomeUnknownError`: a write was sent and its answer was lost. It may have been applied.
 * - `OverloadedError`: the call was not sent, because too many calls are unanswered.
 * - `SessionLostError`, `ClosedError`, `TimeoutError`, `InvalidArgumentError`.
 *
 * @example
 * const zk = connect({ servers: 'zk1:2181,zk2:2181/app' });
 * await zk.create('/config', Buffer.from('{}'));
 * const { data, stat } = await zk.get('/config', { watch: (event) => console.log(event.type) });
 * await zk.set('/config', Buffer.from('{"a":1}'), { version: stat.version });
 * await zk.close();
 */
export interface ZooKeeper {
  readonly state: ConnectionState;
  /** The current session, or undefined until the first one is created, and between a loss and the next one. */
  readonly session: Session | undefined;
  /** The newest transaction that the servers of the current session have answered with; 0 before the first answer. */
  readonly lastZxid: bigint;
  /** Name of the server that confirmed the session, e.g. `zk1:2181 (192.0.2.7)`; undefined while not connected. */
  readonly server: string | undefined;
  readonly counters: ZooKeeperCounters;
  /**
   * False while unanswered calls exceed half of `maxPendingCalls` or `maxPendingBytes`. Calls are accepted up to the
   * full limit, and reject with `OverloadedError` beyond it.
   */
  readonly writable: boolean;
  /** Resolves once `writable` is true. Rejects when the client is closed, on abort, and at the deadline. */
  drained(options?: CallOptions): Promise<void>;

  on<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this;
  off<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this;

  /** Resolves with the session once a server has confirmed it. Rejects when closed, on abort, and at the deadline. */
  connected(options?: CallOptions): Promise<Session>;

  /** Creates a znode. Resolves with its stat and its path, which includes the sequence number of sequential modes. */
  create(
    path: string,
    data?: Uint8Array,
    options?: CreateOptions & CallOptions,
  ): Promise<{ readonly path: string; readonly stat: Stat }>;
  /** Deletes a znode that has no children. */
  delete(path: string, options?: { version?: number } & CallOptions): Promise<void>;
  /** Resolves with undefined if the znode does not exist. `watch` is called once, at the next change of any kind. */
  exists(path: string, options?: { watch?: (event: WatchEvent) => void } & CallOptions): Promise<Stat | undefined>;
  /** Reads the data of a znode. `watch` is called once, at the next change or deletion. */
  get(
    path: string,
    options?: { watch?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<{ readonly data: Uint8Array; readonly stat: Stat }>;
  /** Replaces the data of a znode. */
  set(path: string, data: Uint8Array, options?: { version?: number } & CallOptions): Promise<Stat>;
  /** Lists the names of the children, unordered. `watch` is called once, at their next creation or deletion. */
  children(
    path: string,
    options?: { watch?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<{ readonly children: readonly string[]; readonly stat: Stat }>;
  /** Resolves once the connected server has applied every transaction that was committed before the call. */
  sync(path: string, options?: CallOptions): Promise<void>;
  /** Applies all operations or none. Rejects with the error of the failed one, whose index is `operationIndex`. */
  transaction(ops: readonly TransactionOp[], options?: CallOptions): Promise<readonly TransactionResult[]>;
  getAcl(path: string, options?: CallOptions): Promise<{ readonly acl: readonly Acl[]; readonly stat: Stat }>;
  setAcl(path: string, acl: readonly Acl[], options?: { version?: number } & CallOptions): Promise<Stat>;

  /** Reads several znodes from one state of the server. Older servers than 3.6 reject with code `unimplemented`. */
  readTransaction(ops: readonly ReadOp[], options?: CallOptions): Promise<readonly ReadResult[]>;
  /** Counts the znodes below a path, at any depth. Needs ZooKeeper 3.6 (else code `unimplemented`). */
  countDescendants(path: string, options?: CallOptions): Promise<number>;
  /**
   * Lists the paths of this session's ephemeral znodes that start with `prefix` (default `/`). Needs ZooKeeper 3.6
   * (else code `unimplemented`).
   */
  ephemerals(prefix?: string, options?: CallOptions): Promise<readonly string[]>;
  /** Lists the identities of this client at the server. Needs ZooKeeper 3.7 (else code `unimplemented`). */
  whoAmI(options?: CallOptions): Promise<readonly Identity[]>;
  /**
   * Adds credentials for this connection and all later ones; calls that are issued afterwards use them. Rejects with
   * code `auth-failed` if the server refuses them; the client then reconnects without them. Aborting the call does not
   * withdraw them.
   *
   * @example
   * await zk.addAuth('digest', 'user:password');
   */
  addAuth(scheme: string, auth: string | Uint8Array, options?: CallOptions): Promise<void>;
  /**
   * Replaces the list of servers (see `ClientOptions.servers`) and keeps the session. If the current server is not on
   * the new list, the client moves to another one once every sent request is answered. Throws `InvalidArgumentError` if
   * the list is malformed or has another chroot.
   */
  updateServers(servers: string | readonly string[]): void;

  /**
   * Removes one-shot watches at a path: all of a kind (default `any`), or those of one `listener`. Each listener
   * receives `watch-removed` before this resolves. Rejects with code `no-watcher` if there is none. To remove a
   * persistent watch, call its `close`.
   */
  removeWatches(
    path: string,
    options?: { readonly kind?: WatchKind; readonly listener?: (event: WatchEvent) => void } & CallOptions,
  ): Promise<void>;
  /** Adds a persistent watch in the background; `onReset` reports that it is set. ZooKeeper 3.6, see `onError`. */
  watch(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch;

  /** Ends the session, which deletes its ephemeral znodes, and rejects pending calls with `ClosedError`. Idempotent. */
  close(): Promise<void>;
}
