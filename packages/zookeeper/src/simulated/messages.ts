/** Requests and answers of the simulated server, decoded. */

import type { Acl, CreateMode, Identity, ReadOp, Stat, TransactionOp, WatchKind } from '../api.js';

/** A request. Paths include the chroot. A `version` of -1 matches any. */
export type Request =
  | {
      readonly type: 'create';
      readonly path: string;
      readonly data: Uint8Array;
      readonly mode: CreateMode;
      readonly acl: readonly Acl[];
      readonly ttlMs: number;
    }
  | { readonly type: 'delete'; readonly path: string; readonly version: number }
  | { readonly type: 'set'; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | { readonly type: 'check'; readonly path: string; readonly version: number }
  | { readonly type: 'setAcl'; readonly path: string; readonly acl: readonly Acl[]; readonly version: number }
  | { readonly type: 'multi'; readonly ops: readonly WriteRequest[] }
  | { readonly type: 'exists' | 'get' | 'children'; readonly path: string; readonly watch: boolean }
  | { readonly type: 'getAcl' | 'sync'; readonly path: string }
  | { readonly type: 'addWatch'; readonly path: string; readonly recursive: boolean }
  | { readonly type: 'removeWatches'; readonly path: string; readonly kind: WatchKind }
  | ({ readonly type: 'setWatches' } & WatchesToRestore)
  | { readonly type: 'auth'; readonly scheme: string; readonly auth: Uint8Array }
  | { readonly type: 'multiRead'; readonly ops: readonly ReadOp[] }
  | { readonly type: 'ephemerals'; readonly path: string }
  | { readonly type: 'countDescendants'; readonly path: string }
  | { readonly type: 'ping' | 'whoAmI' | 'close' };

export type WriteRequest = Extract<Request, { type: TransactionOp['type'] }>;

/** The watches of a client that reconnects (`SetWatches2`). */
export interface WatchesToRestore {
  /** The newest transaction that the client has seen. */
  readonly sinceZxid: bigint;
  readonly data: readonly string[];
  readonly exist: readonly string[];
  readonly children: readonly string[];
  readonly persistent: readonly string[];
  readonly recursive: readonly string[];
}

/** Result of one write. `create` and `set` have a stat. */
export interface WriteResult {
  readonly path: string;
  readonly stat: Stat | undefined;
}

export type AnswerValue =
  | { readonly type: 'none' }
  | { readonly type: 'path'; readonly path: string }
  | { readonly type: 'paths'; readonly paths: readonly string[] }
  | { readonly type: 'count'; readonly count: number }
  | { readonly type: 'identities'; readonly identities: readonly Identity[] }
  | { readonly type: 'reads'; readonly results: readonly ReadAnswer[] }
  | { readonly type: 'created'; readonly path: string; readonly stat: Stat }
  | { readonly type: 'stat'; readonly stat: Stat }
  | { readonly type: 'data'; readonly data: Uint8Array; readonly stat: Stat }
  | { readonly type: 'children'; readonly children: readonly string[]; readonly stat: Stat }
  | { readonly type: 'acl'; readonly acl: readonly Acl[]; readonly stat: Stat }
  | { readonly type: 'multi'; readonly ops: readonly WriteRequest[]; readonly results: readonly WriteResult[] }
  /** The transaction failed with `serverCode` at `index` of `count` operations. */
  | { readonly type: 'multi-failed'; readonly count: number; readonly index: number; readonly serverCode: number };

/** Result of one read of a read transaction. */
export type ReadAnswer =
  | Extract<AnswerValue, { readonly type: 'data' | 'children' }>
  | { readonly type: 'refused'; readonly serverCode: number };

/** One change of a znode, for the watches. */
export interface Change {
  readonly type: 'created' | 'deleted' | 'changed';
  readonly path: string;
  /** Access control list of the changed or deleted znode: decides who receives the event. */
  readonly acl: readonly Acl[];
  /** Access control list of its parent: decides who receives the event of the child list. */
  readonly parentAcl: readonly Acl[];
}

/** Codes of `KeeperException.Code` in answers of the simulation. */
export const Refusal = {
  unimplemented: -6,
  badArguments: -8,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  invalidAcl: -114,
  authFailed: -115,
  notReadOnly: -119,
  noWatcher: -121,
} as const;

/** The server refused a request, which had no effect. */
export class RefusedError extends Error {
  constructor(readonly serverCode: number) {
    super(`refused with code ${serverCode}`);
    this.name = 'RefusedError';
  }
}

/** Returns true if a request can change data, so that a lost answer leaves its outcome unknown. */
export function isWrite(request: Request): boolean {
  switch (request.type) {
    case 'create':
    case 'delete':
    case 'set':
    case 'setAcl':
    case 'multi':
      return true;
    default:
      return false;
  }
}
