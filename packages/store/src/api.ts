/**
 * The domain's records in ZooKeeper: nodes, requests, images, components. Reads come from tree caches and are as old as
 * the last event; every decision is confirmed by a versioned write or a fenced transaction.
 *
 * Errors: a write whose version or lock does not hold any more rejects with `LostOwnershipError`: re-read, and stop.
 * A record that is there but cannot be read rejects with `CorruptRecordError`, more than a server accepts in one
 * transaction with `TransactionTooLargeError`. Everything else is the ZooKeeper client's error. A creation, or taking a
 * lock, whose answer was lost rejects with `OutcomeUnknownError`: no lock is kept, and records that were made or changed
 * nevertheless show in the caches. Writes under a lock find out by themselves what became of them.
 */

import type { CallOptions, HeldLock, LockOptions, ZooKeeper } from '@nodepool/zookeeper';
import type { ComponentData, ComponentKind, PoolComponentData } from './component.js';
import type { Node, NodeData, NodeRequest, NodeRequestData } from '@nodepool/core';
import type { CorruptRecord } from './errors.js';
import type { ImageStore } from './image-api.js';

/** All records of one ensemble. */
export interface Store {
  readonly zooKeeper: ZooKeeper;
  readonly nodes: NodeStore;
  readonly requests: RequestStore;
  readonly images: ImageStore;
  readonly components: ComponentStore;
  readonly installation: InstallationStore;
  /** True while every cache mirrors the server. */
  readonly complete: boolean;
  /** Makes the root znodes if missing, starts the caches. */
  start(): void;
  /** Resolves once `complete`. */
  ready(options?: CallOptions): Promise<void>;
  /** Called on every change of `complete`. Returns how to stop listening. */
  onComplete(listener: (complete: boolean) => void): () => void;
  close(): void;
}

/** The id of the installation, see `INSTALLATION_PATH`. */
export interface InstallationStore {
  /** As last seen; throws before the store is `ready`. */
  readonly id: string;
  /** Reads past the cache. Rejects with `InstallationIdError` if what is there cannot be an id. */
  read(options?: CallOptions): Promise<string>;
  /** Replaces the id; running processes follow. Rejects with `InstallationIdError` if the text cannot be one. */
  set(id: string, options?: CallOptions): Promise<void>;
}

/** A change of one record, told synchronously and in order. `undefined`: was or is not there (or is corrupt, see `corrupt`). */
export interface Change<E> {
  readonly id: string;
  readonly before: E | undefined;
  readonly after: E | undefined;
}

export interface NodeEntry {
  readonly id: string;
  readonly node: Node;
  /** Version of the znode, for versioned writes. */
  readonly version: number;
  /** Whether anybody contends for the lock. */
  readonly locked: boolean;
}

export interface NodeStore {
  readonly size: number;
  get(id: string): NodeEntry | undefined;
  all(): Iterable<NodeEntry>;
  /** Indexes; cheap with 10,000 nodes. In the order of ids. */
  inState(state: Node['state']): Iterable<NodeEntry>;
  allocatedTo(requestId: string): readonly NodeEntry[];
  /** Nodes that are `ready`, unlocked and allocated to nobody, oldest first. */
  available(query: { readonly label: string; readonly provider: string; readonly pool: string }): Iterable<NodeEntry>;
  ofProvider(provider: string): Iterable<NodeEntry>;
  corrupt(): Iterable<CorruptRecord>;
  onChange(listener: (change: Change<NodeEntry>) => void): () => void;
  /**
   * For the id of a record that we have just made: resolves when every record that was made before it shows here;
   * undefined: they all do. Holds only if the store is complete then.
   */
  known(id: string): Promise<void> | undefined;

  /** Reads past the cache. */
  read(id: string, options?: CallOptions): Promise<NodeEntry | undefined>;
  /** Returns the paths of znodes below a record that no launcher creates there, read past the cache, parents first. */
  foreignBelow(id: string, options?: CallOptions): Promise<readonly string[]>;
  /** Ids of all records, read past the cache. */
  readIds(options?: CallOptions): Promise<readonly string[]>;

  /** Makes records (without locks) in one transaction; their ids in order. */
  create(nodes: readonly NodeData[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Locks a node that nobody contends for and, if given, changes it, in one transaction. Undefined: somebody was faster
   * (the lock is taken, or the record changed or went). With `from`, of that version only; else of the cache's.
   */
  tryLock(
    id: string,
    options?: { readonly change?: Partial<NodeData>; readonly from?: NodeEntry } & CallOptions,
  ): Promise<NodeHandle | undefined>;
  /** As `tryLock`, for several: all or none. */
  tryLockAll(
    nodes: readonly { readonly id: string; readonly change?: Partial<NodeData>; readonly from?: NodeEntry }[],
    options?: CallOptions,
  ): Promise<readonly NodeHandle[] | undefined>;
  /** Waits in line for the lock (the CLI does; daemons use `tryLock`). The node is read again under the lock. */
  lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle>;
}

/** A node whose lock we hold. */
export interface NodeHandle {
  readonly id: string;
  /** As it was last read or written under the lock. */
  readonly node: Node;
  readonly lock: HeldLock;
  /** Versioned and fenced write; sets `state_time` when `state` changes. Writes of one handle are applied in order. */
  update(change: Partial<NodeData>, options?: CallOptions): Promise<void>;
  /**
   * Releases the lock, with a last change in the same transaction. Rejects if the change could not be written; the lock
   * is released even then.
   */
  release(change?: Partial<NodeData>, options?: CallOptions): Promise<void>;
  /**
   * Removes the record and its lock in one transaction. Returns false if others contend for the lock, or if there are
   * foreign znodes below the record: it becomes `deleted` then, and is unlocked, so that the next one who tries removes it.
   */
  remove(options?: CallOptions): Promise<boolean>;
}

export interface RequestEntry {
  readonly id: string;
  readonly request: NodeRequest;
  readonly version: number;
  readonly locked: boolean;
}

export interface RequestStore {
  readonly size: number;
  get(id: string): RequestEntry | undefined;
  all(): Iterable<RequestEntry>;
  inState(state: NodeRequest['state']): Iterable<RequestEntry>;
  corrupt(): Iterable<CorruptRecord>;
  onChange(listener: (change: Change<RequestEntry>) => void): () => void;
  /**
   * Lock directories whose request is gone, unlocked: ids. When one appears because its last contender went, a change
   * with neither `before` nor `after` is told.
   */
  orphanedLocks(): Iterable<string>;

  read(id: string, options?: CallOptions): Promise<RequestEntry | undefined>;
  /** Puts a request; resolves with its id. Persistent unless `ephemeral`. Priority 0 to 999. */
  submit(
    request: NodeRequestData,
    options: { readonly priority: number; readonly ephemeral?: boolean } & CallOptions,
  ): Promise<string>;
  /** Removes a request; a missing one is fine. */
  remove(id: string, options?: CallOptions): Promise<void>;
  /** Removes the lock directories of requests that are gone, those that are still contended for excepted. */
  removeOrphanedLocks(ids: readonly string[], options?: CallOptions): Promise<void>;

  /**
   * Takes a request that nobody contends for: locks it, makes it `pending` (a lost pending one stays so), makes the
   * records of nodes to launch, and locks and allocates ready nodes to reuse, which get the request's tenant and
   * requestor, all in one transaction. Resolves with undefined if another launcher was faster with the request or a node.
   */
  accept(
    entry: RequestEntry,
    nodes: { readonly create: readonly NodeData[]; readonly reuse: readonly NodeEntry[] },
    options?: CallOptions,
  ): Promise<AcceptedRequest | undefined>;
}

export interface AcceptedRequest {
  readonly request: RequestHandle;
  /** Ids of the records made, in order. State `init`, not locked yet: `NodeStore.tryLockAll` does, and starts them. */
  readonly created: readonly string[];
  /** In the order of `reuse`. */
  readonly reused: readonly NodeHandle[];
}

/** A request whose lock we hold. */
export interface RequestHandle {
  readonly id: string;
  readonly request: NodeRequest;
  readonly lock: HeldLock;
  /** Makes records of further nodes for the request (fenced by its lock); their ids in order. */
  createNodes(nodes: readonly NodeData[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Takes an acceptance back in one transaction: records of nodes of which nothing was begun, in these versions, are
   * removed, the request becomes `requested` again and is unlocked. Rejects with `RequestGoneError` when it was withdrawn;
   * the lock is released even then.
   */
  undo(nodes: readonly { readonly id: string; readonly version: number }[], options?: CallOptions): Promise<void>;
  /**
   * Hands out in one transaction: every node gets its change, state `ready` and is unlocked; the request becomes
   * `fulfilled` with `nodes` in this order and is unlocked. Rejects with `RequestGoneError` when it was withdrawn.
   */
  fulfil(
    nodes: readonly { readonly handle: NodeHandle; readonly change?: Partial<NodeData> }[],
    options?: CallOptions,
  ): Promise<void>;
  /**
   * Gives the request back with a change (declined, failed, or none) and unlocks it; nodes to keep for others are
   * deallocated and unlocked in the same transaction. Rejects if that could not be written, with `RequestGoneError` when
   * the request was withdrawn; all locks are released even then.
   */
  release(
    change: Partial<NodeRequestData>,
    deallocate?: readonly { readonly handle: NodeHandle; readonly change?: Partial<NodeData> }[],
    options?: CallOptions,
  ): Promise<void>;
}

export interface ComponentEntry {
  /** Path of the znode. */
  readonly path: string;
  readonly component: ComponentData | PoolComponentData;
}

export interface ComponentStore {
  /** True while the registry is known completely: decisions about who is there are only taken then. */
  readonly complete: boolean;
  all(kind?: ComponentKind): Iterable<ComponentEntry>;
  pools(): Iterable<PoolComponentData>;
  onChange(listener: (change: Change<ComponentEntry>) => void): () => void;
  /** Registers a component of this process; it is registered again with each new session, until `close`. */
  register<C extends ComponentData>(component: C): ComponentHandle<C>;
}

export interface ComponentHandle<C extends ComponentData> {
  readonly component: C;
  /** Resolves once it is registered. */
  registered(options?: CallOptions): Promise<void>;
  update(change: Partial<C>): Promise<void>;
  close(): Promise<void>;
}

/** Names of znodes of ours; `nodes/`, `requests/`, `requests-lock/`, `images/`, `components/` below it. */
export const NODEPOOL_ROOT = '/nodepool';
