/** One znode of the simulated server: its fields, its stat, and the rules for its owner, version and name. */

import type { Acl, Stat } from '../api.js';
import { Refusal, RefusedError, type WriteRequest } from './messages.js';

/** The owner field marks containers and TTL znodes (`EphemeralType`). */
export const CONTAINER_OWNER = -(2n ** 63n);
const TTL_OWNER_MARK = -(2n ** 56n);

export interface Znode {
  data: Uint8Array;
  acl: readonly Acl[];
  readonly czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  readonly ctime: number;
  mtime: number;
  version: number;
  aversion: number;
  /** Number of children ever created, the source of sequence numbers. */
  creations: number;
  readonly owner: bigint;
  readonly ttlMs: number;
  readonly children: Set<string>;
}

export function freshNode(
  data: Uint8Array,
  acl: readonly Acl[],
  { zxid, now }: { readonly zxid: bigint; readonly now: number },
  owner: bigint,
  ttlMs: number,
): Znode {
  return {
    data,
    acl,
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    ctime: now,
    mtime: now,
    version: 0,
    aversion: 0,
    creations: 0,
    owner,
    ttlMs,
    children: new Set(),
  };
}

export function statOf(node: Znode): Stat {
  const numChildren = node.children.size;
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    ctime: node.ctime,
    mtime: node.mtime,
    version: node.version,
    // Creations plus deletions: all created children but the current ones were deleted.
    cversion: node.creations * 2 - numChildren,
    aversion: node.aversion,
    // Clients do not see the marks of containers and TTL znodes.
    ephemeralOwner: node.owner > 0n ? node.owner : 0n,
    dataLength: node.data.length,
    numChildren,
    pzxid: node.pzxid,
  };
}

export function ownerOf(request: Extract<WriteRequest, { type: 'create' }>, sessionId: bigint): bigint {
  switch (request.mode) {
    case 'ephemeral':
    case 'ephemeral-sequential':
      return sessionId;
    case 'container':
      return CONTAINER_OWNER;
    case 'persistent-ttl':
    case 'persistent-sequential-ttl':
      return TTL_OWNER_MARK + BigInt(request.ttlMs);
    case 'persistent':
    case 'persistent-sequential':
      return 0n;
  }
}

export function checkVersion(actual: number, expected: number): void {
  if (expected !== -1 && expected !== actual) throw new RefusedError(Refusal.badVersion);
}

export function sequenceDigits(count: number): string {
  return String(count).padStart(10, '0');
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
