/** Whether a pool shall serve a request, leave it to others, or decline it; and what becomes of a declined one. */

import type { NodeRequest, NodeRequestData } from '@nodepool/core';
import type { PoolComponentData, Store } from '@nodepool/store';
import type { Candidates } from './candidate-pools.js';

export type Verdict =
  /** Serve it as soon as there is room. */
  | { readonly kind: 'serve' }
  /** Others go first; asked again when the registry or the request changes. */
  | { readonly kind: 'leave'; readonly reason: string }
  /** It cannot be served here yet; asked again when that may have changed. */
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'decline'; readonly reason: string };

/** What a pool says of itself. */
export interface PoolAbilities {
  readonly id: string;
  readonly providerName: string;
  readonly priority: number;
  readonly disabled: boolean;
  hasLabel(label: string): boolean;
  /** Whether the request, which nobody works on, has nodes of this pool already. */
  hasBegun(request: NodeRequest): boolean;
  /** Why the request cannot be served, now or ever; undefined when it can. */
  obstacle(request: NodeRequest): string | undefined;
  /** What the request has to wait for before it can be served here; undefined: nothing but room. */
  waitsFor(request: NodeRequest): string | undefined;
  /** Why requests that another pool can serve are left to it at the moment; undefined: they are not. */
  readonly trouble: string | undefined;
}

/** Decides for one pool. The candidates must be complete. */
export function judge(request: NodeRequest, pool: PoolAbilities, candidates: Candidates): Verdict {
  const others = (): PoolComponentData[] => otherCandidates(request, pool.id, candidates);
  if (request.declined_by.includes(pool.id)) {
    // Pools that were to decide after this one may have gone since.
    return everybodyDeclined(request, request.declined_by, candidates)
      ? { kind: 'decline', reason: 'every registered pool has declined' }
      : { kind: 'leave', reason: 'declined by this pool' };
  }
  // A request that was begun here goes on here: the others leave it to us, whatever comes before us.
  const begun = pool.hasBegun(request);
  if (!begun && request.provider !== null && request.provider !== pool.providerName) {
    const preferred = others().some((other) => other.provider_name === request.provider);
    if (preferred) return { kind: 'leave', reason: `provider ${request.provider} is preferred` };
  }
  const missing = request.node_types.find((label) => !pool.hasLabel(label));
  if (missing !== undefined) {
    return others().length > 0
      ? { kind: 'leave', reason: `this pool has no label ${missing}` }
      : { kind: 'decline', reason: `no pool has all the labels; this one has no ${missing}` };
  }
  if (request.node_types.length === 0) return { kind: 'decline', reason: 'the request names no label' };
  if (pool.disabled) return { kind: 'decline', reason: 'the pool is disabled (max-servers)' };
  const wait = pool.waitsFor(request);
  if (wait !== undefined) return { kind: 'wait', reason: wait };
  const obstacle = pool.obstacle(request);
  if (obstacle !== undefined) return { kind: 'decline', reason: obstacle };
  const ahead = begun ? undefined : others().find((other) => other.priority < pool.priority && !other.paused);
  if (ahead !== undefined) return { kind: 'leave', reason: `pool ${ahead.id} has a higher priority` };
  const { trouble } = pool;
  if (trouble !== undefined && !begun && canBeServedElsewhere(request, pool.id, candidates)) {
    return { kind: 'leave', reason: `another pool can serve it, while here ${trouble}` };
  }
  return { kind: 'serve' };
}

/** A lost request whose nodes are in another pool (`own`: this one, as `provider/pool`) that is still served goes on there. */
export function belongsElsewhere(
  requestId: string,
  { nodes }: Pick<Store, 'nodes'>,
  candidates: Candidates,
  own: string,
): boolean {
  const of = nodes.allocatedTo(requestId)[0]?.node;
  if (of === undefined || `${of.provider ?? ''}/${of.pool ?? ''}` === own) return false;
  return candidates.present().some((pool) => pool.provider_name === of.provider && pool.name === of.pool);
}

/** What a request becomes when this pool declines it. */
export function afterDecline(
  request: NodeRequest,
  poolId: string,
  candidates: Candidates,
): Pick<NodeRequestData, 'state' | 'declined_by'> {
  const declinedBy = request.declined_by.includes(poolId) ? request.declined_by : [...request.declined_by, poolId];
  const failed = candidates.complete && everybodyDeclined(request, declinedBy, candidates);
  return { state: failed ? 'failed' : 'requested', declined_by: declinedBy };
}

/** Returns true if a pool other than this one may serve the request and does not say that it is paused. */
export function canBeServedElsewhere(request: NodeRequest, poolId: string, candidates: Candidates): boolean {
  return otherCandidates(request, poolId, candidates).some(({ paused }) => !paused);
}

function everybodyDeclined(
  { node_types: labels }: NodeRequest,
  declinedBy: readonly string[],
  candidates: Candidates,
): boolean {
  const declined = ({ id }: PoolComponentData): boolean => declinedBy.includes(id);
  return candidates.present().every(declined) && candidates.having(labels).every(declined);
}

/** Pools that have all the labels and have not declined, without this one. */
function otherCandidates(request: NodeRequest, poolId: string, candidates: Candidates): PoolComponentData[] {
  return candidates.having(request.node_types).filter(({ id }) => id !== poolId && !request.declined_by.includes(id));
}
