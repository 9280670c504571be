/**
 * Confirms accepted requests against the limits before the first call to the cloud. Records in state `init` are
 * tentative, because several launchers may have created them at the same time. docs/how-it-works.md explains why
 * confirmed records never exceed a limit.
 */

import type { NodeRequest, QuotaInformation } from '@nodepool/core';
import type { NodeHandle } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import { useOf } from './need.js';
import type { PoolRef, QuotaLedger } from './quota-ledger.js';
import type { Shortfall } from './quota-scope.js';

/** The pool whose limits apply. */
export interface LimitedPool {
  readonly context: Pick<LauncherContext, 'store'>;
  readonly ledger: Pick<QuotaLedger, 'isLimited' | 'confirm' | 'retryShortfall'>;
  readonly place: PoolRef;
  /** Aborts when the pool is stopped. */
  readonly signal: AbortSignal;
}

/** The part of an accepted request that counts against limits and is not confirmed. */
export interface Unconfirmed {
  readonly request: NodeRequest;
  /** Id of the newest record in state `init`; empty if there is none. */
  readonly lastId: string;
  /** Need of the records in state `init`. */
  readonly need: QuotaInformation;
  /** Ready nodes that counted for another tenant before. */
  readonly handedOver: readonly NodeHandle[];
}

/** Resolves with the shortfall if the limits do not allow the records and hand-overs; the caller then undoes them. */
export async function confirmQuota(pool: LimitedPool, unconfirmed: Unconfirmed): Promise<Shortfall | undefined> {
  const { request, lastId, need, handedOver } = unconfirmed;
  const isLimited = pool.ledger.isLimited(request.tenant_name);
  if (lastId === '' && (handedOver.length === 0 || !isLimited)) return undefined;
  const later = isLimited ? (handedOver[0]?.id ?? lastId) : undefined;
  if (later !== undefined || !isCountedUpTo(pool, lastId)) await countedUpTo(pool, lastId, later);
  const tenantNeed = handedOver.reduce((sum, { node }) => sum.add(useOf(node.resources)), need);
  return pool.ledger.confirm(pool.place, request, lastId, { need, tenantNeed });
}

/**
 * Resolves with a limit that another instance of a node would exceed while records up to `lastId` are being deleted.
 * The instance of a failed attempt counts until its record is removed.
 */
export async function retryShortfall(
  pool: LimitedPool,
  { request, lastId, need }: Omit<Unconfirmed, 'handedOver'>,
): Promise<Shortfall | undefined> {
  await countedUpTo(pool, lastId);
  return pool.ledger.retryShortfall(pool.place, request, lastId, { need, tenantNeed: need });
}

function isCountedUpTo({ context: { store } }: LimitedPool, lastId: string): boolean {
  return store.complete && store.nodes.known(lastId) === undefined;
}

/** Resolves once the ledger counts every record up to this id and every hand-over written before node `later`. */
async function countedUpTo({ context: { store }, signal }: LimitedPool, lastId: string, later?: string): Promise<void> {
  do {
    if (!store.complete) await store.ready({ signal });
    await store.nodes.known(lastId);
    // Once a later read is answered, the cache has every earlier write.
    if (later !== undefined) await store.nodes.read(later, { signal });
  } while (!store.complete);
}
