/**
 * The history of a round: the clients' records during the faults, and the servers' final state. Plain JSON, which
 * client processes write to files for the checker.
 */

/** The client's report on a call: it took effect, it did not, or it is unknown. */
export type Outcome = 'applied' | 'not-applied' | 'unknown';

/** One atomic call that creates or deletes znodes with unique paths. */
export interface NodeWrite {
  readonly creates: readonly string[];
  readonly deletes: readonly string[];
  /** True for a transaction with a condition that never holds. */
  readonly mustFail: boolean;
  readonly outcome: Outcome;
  /** Code of the error. */
  readonly code?: string;
}

/** A conditional write of a unique value to a register with an expected version. */
export interface RegisterWrite {
  readonly path: string;
  readonly value: string;
  readonly onVersion: number;
  readonly outcome: Outcome;
  readonly code?: string;
  /** The version that the server returned. */
  readonly version?: number;
}

export interface RegisterRead {
  readonly path: string;
  readonly version: number;
  readonly value: string;
}

/**
 * A read of a watched znode's number of changes, with the numbers of events since the watch was set on this connection:
 * at the issue of the read, and at its answer.
 */
export interface WatchedRead {
  readonly changes: number;
  readonly eventsBefore: number;
  readonly eventsAfter: number;
}

/** A persistent watch on one connection, from `onReset` until the loss of the connection. */
export interface WatchSegment {
  readonly path: string;
  readonly reads: readonly WatchedRead[];
}

/** A one-shot watch. */
export interface OneShot {
  readonly path: string;
  /** Outcome of the read that set it. */
  readonly version: number;
  /** Number of its events, including its removal with the session. */
  readonly events: number;
}

/** A write under a lock, in one transaction with the lock's fence. */
export interface FencedWrite {
  readonly lock: string;
  readonly contender: string;
  /** The version of the lock's counter, read under the lock, plus one. */
  readonly number: number;
  readonly outcome: Outcome;
  /** The version of the counter after the write. */
  readonly version?: number;
}

/** An ephemeral znode that a client created and did not delete. */
export interface Ephemeral {
  readonly path: string;
  readonly outcome: Outcome;
  /** Id of the session that owns it, in decimal, if the server answered. */
  readonly owner?: string;
}

export interface ClientHistory {
  readonly client: string;
  /** Calls without an outcome after all faults and all deadlines. */
  readonly unsettled: readonly string[];
  /** Errors that are not a `ZooKeeperError`. */
  readonly unexpected: readonly string[];
  /** Number of issued calls. */
  readonly calls: number;
  readonly sessionsLost: number;
  readonly nodeWrites: readonly NodeWrite[];
  readonly registerWrites: readonly RegisterWrite[];
  readonly registerReads: readonly RegisterRead[];
  readonly segments: readonly WatchSegment[];
  readonly oneShots: readonly OneShot[];
  readonly fencedWrites: readonly FencedWrite[];
  readonly ephemerals: readonly Ephemeral[];
  /** Id of the session at the end, in decimal. The session is still open then. */
  readonly session: string;
  /** The tree cache at the end: a state identifier for each path. */
  readonly tree: Readonly<Record<string, string>>;
}

/** The server's state at the end, while all sessions are still open. */
export interface FinalState {
  /** Paths of all znodes of `nodeWrites`, without sequence numbers. */
  readonly nodes: readonly string[];
  readonly registers: Readonly<Record<string, { readonly version: number; readonly value: string }>>;
  /** Contenders, with their sessions, in the lock directories after the release of all locks. */
  readonly contenders: readonly string[];
  /** Session ids of the owners of ephemerals, in decimal, by path. */
  readonly ephemerals: Readonly<Record<string, string>>;
  readonly tree: Readonly<Record<string, string>>;
}

/** A violation of a rule. */
export interface Violation {
  readonly rule: string;
  readonly client?: string;
  readonly detail: string;
}
