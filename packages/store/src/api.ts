/**
 * The domain's records in ZooKeeper: nodes, requests, images, components. Reads are served from tree caches, which lag
 * behind the server; every decision is confirmed by a versioned write or a fenced transaction.
 *
 * Errors: a write rejects with `LostOwnershipError` if its version or lock is no longer valid: re-read, and stop. An
 * existing record that cannot be parsed rejects with `CorruptRecordError`, and a transaction over the server's size
 * limit with `TransactionTooLargeError`. Every other error is the ZooKeeper client's.
 *
 * A creation or a lock acquisition rejects with `OutcomeUnknownError` if its answer was lost: no lock is held, and
 * records that were created or changed anyway show in the caches. Writes under a lock determine their outcome
 * themselves.
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
  readonly suspensions: SuspensionStore;
  /** True while every cache mirrors the server. */
  readonly complete: boolean;
  /** Creates missing root znodes and starts the caches. */
  start(): void;
  /** Resolves once `complete`. */
  ready(options?: CallOptions): Promise<void>;
  /** Calls `listener` on every change of `complete`. Returns a function that removes the listener. */
  onComplete(listener: (complete: boolean) => void): () => void;
  close(): void;
}

/** The id of the installation, see `INSTALLATION_PATH`. */
export interface InstallationStore {
  /** The id as last seen; throws before the store is `ready`. */
  readonly id: string;
  /** Reads past the cache. Rejects with `InstallationIdError` if the data is not a valid id. */
  read(options?: CallOptions): Promise<string>;
  /**
   * Replaces the id and suspends deletions, because resources with the new id may have no records here; running
   * processes follow. Rejects with `InstallationIdError` if the text is not a valid id.
   */
  set(id: string, options?: CallOptions): Promise<void>;
}

/** The reason why resources without a record are not deleted at the moment. */
export interface Suspension {
  /** Name of the provider; null for all. */
  readonly provider: string | null;
  readonly reason: string;
  /** Unix seconds. */
  readonly since: number;
  /** Identifier of the process that suspended the deletions. */
  readonly by: string;
  /** Id of the first node that was created after it; null if unknown. */
  readonly nextNode: string | null;
}

/** Suspended deletions, see `suspensions.ts`. */
export interface SuspensionStore {
  /** Returns the suspensions as last seen. */
  all(): readonly Suspension[];
  /**
   * Resolves with the suspension that applies to the provider, or to all, read past the cache. Also suspends deletions
   * if the ids of nodes start again, since an older state was restored then.
   */
  check(provider: string | null, options?: CallOptions): Promise<Suspension | undefined>;
  /** Suspends the deletions of a provider, or of all. An existing suspension remains as it is. */
  suspend(provider: string | null, reason: string, options?: CallOptions): Promise<void>;
  /** Ends the suspension of a provider, or that of all. */
  resume(provider: string | null, options?: CallOptions): Promise<void>;
  /** Resolves with the id of the next node, read past the cache. */
  nextNodeId(options?: CallOptions): Promise<string>;
}

/**
 * A change of one record, reported synchronously and in order. `before` or `after` is `undefined` if the record does
 * not exist at that time, or is corrupt (see `corrupt`).
 */
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
  /** True while the lock has contenders. */
  readonly locked: boolean;
}

export interface NodeStore {
  readonly size: number;
  get(id: string): NodeEntry | undefined;
  all(): Iterable<NodeEntry>;
  /** Iterates in the order of ids over an index; cheap with 10,000 nodes. */
  inState(state: Node['state']): Iterable<NodeEntry>;
  allocatedTo(requestId: string): readonly NodeEntry[];
  /** Iterates over nodes that are `ready`, unlocked and not allocated, oldest first. */
  available(query: { readonly label: string; readonly provider: string; readonly pool: string }): Iterable<NodeEntry>;
  ofProvider(provider: string): Iterable<NodeEntry>;
  corrupt(): Iterable<CorruptRecord>;
  onChange(listener: (change: Change<NodeEntry>) => void): () => void;
  /**
   * Takes the id of a record that this process has just created. Resolves once all records created before it are in the
   * cache; returns undefined if they already are. Valid only if the store is complete at that time.
   */
  known(id: string): Promise<void> | undefined;

  /** Reads the record past the cache. */
  read(id: string, options?: CallOptions): Promise<NodeEntry | undefined>;
  /** Returns the paths of znodes below a record that no launcher creates there, read past the cache, parents first. */
  foreignBelow(id: string, options?: CallOptions): Promise<readonly string[]>;
  /**
   * Deletes records that this call and the previous one found empty, unchanged and not locked. Contenders for the locks
   * of deleted nodes leave such records behind.
   */
  removeEmpty(options?: CallOptions): Promise<void>;
  /** Resolves with the ids of all records, read past the cache. */
  readIds(options?: CallOptions): Promise<readonly string[]>;

  /** Creates records (without locks) in one transaction. Resolves with their ids in order. */
  create(nodes: readonly NodeData[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Creates the records that `plan` returns in one transaction, which fails if another process has created nodes that
   * the cache did not have during `plan`; then `plan` is called again. Processes whose plans contain only what the
   * cache lacks therefore create it once. Resolves with the ids in order.
   */
  createOnce(provider: string, plan: () => readonly NodeData[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Locks an uncontended node and applies `change`, if given, in one transaction. Resolves with undefined if the lock
   * is taken, or if the record was changed or deleted. Requires the version of `from` if given, else the cached
   * version.
   */
  tryLock(
    id: string,
    options?: { readonly change?: Partial<NodeData>; readonly from?: NodeEntry } & CallOptions,
  ): Promise<NodeHandle | undefined>;
  /** Does the same as `tryLock` for several nodes: all or none. */
  tryLockAll(
    nodes: readonly { readonly id: string; readonly change?: Partial<NodeData>; readonly from?: NodeEntry }[],
    options?: CallOptions,
  ): Promise<readonly NodeHandle[] | undefined>;
  /** Waits in line for the lock (the CLI does; daemons use `tryLock`). The node is read again under the lock. */
  lock(id: string, options?: LockOptions & CallOptions): Promise<NodeHandle>;
}

/** A node whose lock this process holds. */
export interface NodeHandle {
  readonly id: string;
  /** The node as last read or written under the lock. */
  readonly node: Node;
  readonly lock: HeldLock;
  /**
   * Writes the change, versioned and fenced, and sets `state_time` if `state` changes. Writes of one handle keep their
   * order.
   */
  update(change: Partial<NodeData>, options?: CallOptions): Promise<void>;
  /**
   * Releases the lock, with a last change in the same transaction. Rejects if the change could not be written; the lock
   * is released even then.
   */
  release(change?: Partial<NodeData>, options?: CallOptions): Promise<void>;
  /**
   * Deletes the record and its lock in one transaction. If the lock has other contenders or foreign znodes exist below
   * the record, sets its state to `deleted`, unlocks it and resolves with false; the next process that tries deletes
   * it.
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
   * Returns the ids of uncontended lock directories whose request no longer exists. When the last contender of such a
   * lock disappears, listeners receive a change with neither `before` nor `after`.
   */
  orphanedLocks(): Iterable<string>;

  read(id: string, options?: CallOptions): Promise<RequestEntry | undefined>;
  /** Submits a request and resolves with its id. The znode is persistent unless `ephemeral`. Priority is 0 to 999. */
  submit(
    request: NodeRequestData,
    options: { readonly priority: number; readonly ephemeral?: boolean } & CallOptions,
  ): Promise<string>;
  /** Deletes a request; does nothing if it does not exist. */
  remove(id: string, options?: CallOptions): Promise<void>;
  /** Deletes the uncontended lock directories of requests that no longer exist. */
  removeOrphanedLocks(ids: readonly string[], options?: CallOptions): Promise<void>;

  /**
   * Accepts an uncontended request in one transaction: locks it, sets it to `pending` (or leaves it `pending`), creates
   * the records of nodes to launch, and locks and allocates ready nodes to reuse. Reused nodes get the request's tenant
   * and requestor. Resolves with undefined if another launcher was faster with the request or a node.
   */
  accept(
    entry: RequestEntry,
    nodes: { readonly create: readonly NodeData[]; readonly reuse: readonly NodeEntry[] },
    options?: CallOptions,
  ): Promise<AcceptedRequest | undefined>;
}

export interface AcceptedRequest {
  readonly request: RequestHandle;
  /** Ids of the created records, in order, in state `init` and not locked: `NodeStore.tryLockAll` locks them. */
  readonly created: readonly string[];
  /** Handles in the order of `reuse`. */
  readonly reused: readonly NodeHandle[];
}

/** A request whose lock this process holds. */
export interface RequestHandle {
  readonly id: string;
  readonly request: NodeRequest;
  readonly lock: HeldLock;
  /**
   * Reverts an acceptance in one transaction: deletes the records of nodes that have not been started, in these
   * versions, sets the request to `requested` and unlocks it. Rejects with `RequestGoneError` if the requestor deleted
   * the request; the lock is released even then.
   */
  undo(nodes: readonly { readonly id: string; readonly version: number }[], options?: CallOptions): Promise<void>;
  /**
   * Fulfils the request in one transaction: every node gets its change, state `ready` and is unlocked; the request
   * becomes `fulfilled` with `nodes` in this order and is unlocked. Rejects with `RequestGoneError` if the requestor
   * deleted the request.
   */
  fulfil(
    nodes: readonly { readonly handle: NodeHandle; readonly change?: Partial<NodeData> }[],
    options?: CallOptions,
  ): Promise<void>;
  /**
   * Unlocks the request with a change (declined, failed, or none). Nodes to keep for other requests are deallocated and
   * unlocked in the same transaction. Rejects if that could not be written, with `RequestGoneError` if the requestor
   * deleted the request; all locks are released even then.
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
  /** True while the registry is fully known. Decisions about the presence of components require it. */
  readonly complete: boolean;
  all(kind?: ComponentKind): Iterable<ComponentEntry>;
  pools(): Iterable<PoolComponentData>;
  /** Returns the paths of persistent znodes in the registry. No process owns them, so they are no components. */
  withoutSession(): Iterable<string>;
  onChange(listener: (change: Change<ComponentEntry>) => void): () => void;
  /** Registers a component of this process, and again in each new session, until `close`. */
  register<C extends ComponentData>(component: C): ComponentHandle<C>;
}

export interface ComponentHandle<C extends ComponentData> {
  readonly component: C;
  /** Resolves once the component is registered. */
  registered(options?: CallOptions): Promise<void>;
  update(change: Partial<C>): Promise<void>;
  close(): Promise<void>;
}

/** Root of all znodes of Nodepool: `nodes/`, `requests/`, `requests-lock/`, `images/`, `components/` are below it. */
export const NODEPOOL_ROOT = '/nodepool';
