/**
 * What clients wrote down while servers and connections failed, and what was found at the server afterwards. Everything
 * is plain JSON: it travels from the processes of the clients to the checker in files.
 */

/** What the client said of a call: it took effect, it did not, or nobody knows. */
export type Outcome = 'applied' | 'not-applied' | 'unknown';

/** One call that creates or deletes znodes whose paths are used only once, all of them or none. */
export interface NodeWrite {
  readonly creates: readonly string[];
  readonly deletes: readonly string[];
  /** A transaction that contains a condition that never holds. */
  readonly mustFail: boolean;
  readonly outcome: Outcome;
  /** Of the error. */
  readonly code?: string;
}

/** A write of a value that nobody else writes, on the condition that the register has a certain version. */
export interface RegisterWrite {
  readonly path: string;
  readonly value: string;
  readonly onVersion: number;
  readonly outcome: Outcome;
  readonly code?: string;
  /** The version that the server says it made. */
  readonly version?: number;
}

export interface RegisterRead {
  readonly path: string;
  readonly version: number;
  readonly value: string;
}

/**
 * A read of the number of changes of a watched znode, in terms of the watch: how many events had been delivered, since the
 * watch was set on this connection, when the read was issued and when it was answered.
 */
export interface WatchedRead {
  readonly changes: number;
  readonly eventsBefore: number;
  readonly eventsAfter: number;
}

/** One persistent watch over one connection: from its `onReset` until the connection is lost. */
export interface WatchSegment {
  readonly path: string;
  readonly reads: readonly WatchedRead[];
}

/** A watch that is told of once. */
export interface OneShot {
  readonly path: string;
  /** Of the read that left it. */
  readonly version: number;
  /** How often it was told of, a removal with the session included. */
  readonly told: number;
}

/** A write under a lock, in one transaction with the check that the contender is still there. */
export interface FencedWrite {
  readonly lock: string;
  readonly contender: string;
  /** One more than the version of the lock's counter as it was read under the lock. */
  readonly number: number;
  readonly outcome: Outcome;
  /** The version of the counter that the write made. */
  readonly version?: number;
}

/** An ephemeral znode that a client made and never deleted. */
export interface Ephemeral {
  readonly path: string;
  readonly outcome: Outcome;
  /** The session that owns it, in decimal, when the server told. */
  readonly owner?: string;
}

export interface ClientHistory {
  readonly client: string;
  /** Calls that had no outcome when all faults were over and the deadline of every call had passed. */
  readonly unsettled: readonly string[];
  /** Errors that are not of the client's own kind. */
  readonly unexpected: readonly string[];
  /** Calls that were made, of all kinds. */
  readonly calls: number;
  readonly sessionsLost: number;
  readonly nodeWrites: readonly NodeWrite[];
  readonly registerWrites: readonly RegisterWrite[];
  readonly registerReads: readonly RegisterRead[];
  readonly segments: readonly WatchSegment[];
  readonly oneShots: readonly OneShot[];
  readonly fencedWrites: readonly FencedWrite[];
  readonly ephemerals: readonly Ephemeral[];
  /** The session at the end, in decimal; it is still open then. */
  readonly session: string;
  /** The cached tree at the end: per path, what identifies the state of the znode. */
  readonly tree: Readonly<Record<string, string>>;
}

/** What the server holds at the end, while the sessions of all clients are still open. */
export interface FinalState {
  /** Paths of all znodes that `nodeWrites` are about; sequence numbers are cut off. */
  readonly nodes: readonly string[];
  readonly registers: Readonly<Record<string, { readonly version: number; readonly value: string }>>;
  /** Contenders that are left in the directories of locks, after everybody gave up his locks. */
  readonly contenders: readonly string[];
  /** Owners of ephemerals by path, in decimal. */
  readonly ephemerals: Readonly<Record<string, string>>;
  readonly tree: Readonly<Record<string, string>>;
}

/** A rule that did not hold. */
export interface Violation {
  readonly rule: string;
  readonly client?: string;
  readonly detail: string;
}
