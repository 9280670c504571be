/** Records that are about to be locked, and the parts of the transaction that locks them. */

import type { TransactionOp, TransactionResult } from '@nodepool/zookeeper';
import type { Node } from '@nodepool/core';
import type { Caches, Written } from '../tables/caches.js';
import type { Source } from '../codec/codec.js';
import { checkTransactionSize } from './transaction-size.js';

/** A write of a record in the transaction that locks it. */
export interface Claim<T> {
  readonly id: string;
  readonly path: string;
  readonly lockPath: string;
  readonly version: number;
  /** The record after the write. */
  readonly source: Source<T>;
  /** The data to write; undefined leaves the record unchanged. */
  readonly data: Uint8Array | undefined;
}

export type NodeClaim = Claim<Node>;

/** A transaction that locks records. */
export interface ClaimPlan {
  /** One operation per claim, then further ones. */
  readonly ops: readonly TransactionOp[];
  /** The lock directories in the form of the lock recipe. */
  readonly locks: readonly { readonly path: string; readonly exists: boolean; readonly isNew?: boolean }[];
  /** The paths of the records that are written. */
  readonly paths: readonly string[];
}

/** Returns the claim that replaces the known content of a record with `source`, which may be the same. */
export function claimOf<T>(
  known: { readonly id: string; readonly version: number; readonly source: Source<T> },
  source: Source<T>,
  path: string,
  lockPath: string,
): Claim<T> {
  const { id, version } = known;
  return { id, path, lockPath, version, source, data: source === known.source ? undefined : source.data };
}

/**
 * Returns the transaction of the claims. `newLocks`: lock directories below records that `further` creates. Throws
 * `TransactionTooLargeError` if the server would reject it.
 */
export function claimPlan(
  caches: Caches,
  claims: readonly Claim<unknown>[],
  further: readonly TransactionOp[] = [],
  newLocks: readonly string[] = [],
): ClaimPlan {
  const ops = claims.map(claimOp);
  if (further.length > 0) ops.push(...further);
  const locks: ClaimPlan['locks'] = [
    ...claims.map(({ lockPath: path }) => ({ path, exists: caches.has(path) })),
    ...newLocks.map((path) => ({ path, exists: false, isNew: true })),
  ];
  checkTransactionSize(ops, locks);
  const paths: string[] = [];
  for (const { path, data } of claims) if (data !== undefined) paths.push(path);
  return { ops, locks, paths };
}

/** Returns the contents of the claimed records after their operations. */
export function writtenBy(claims: readonly Claim<unknown>[], results: readonly TransactionResult[]): Written[] {
  const written: Written[] = [];
  claims.forEach(({ path, data }, index) => {
    const result = results[index];
    if (data === undefined || result?.type !== 'set') return;
    const node = { data, stat: result.stat };
    written.push({ path, node });
  });
  return written;
}

/** Returns the operation that writes a claim's change, or that checks the version if there is none. */
function claimOp({ path, version, data }: Claim<unknown>): TransactionOp {
  return data === undefined ? { type: 'check', path, version } : { type: 'set', path, data, version };
}
