/** The other pools that can serve a request. */

import type { NodeRequest } from '@nodepool/core';
import { isOutOfService, isPoolAt, type PoolComponentData } from '@nodepool/store';
import { hasLabels, serves } from '../precedence/serves.js';
import type { Pool } from './pool.js';

type OwnPool = Pick<Pool, 'id' | 'place' | 'candidates'>;

/** Returns true if another pool serves the labels of the request at the moment. */
export function canBeServedElsewhere(request: NodeRequest, pool: OwnPool): boolean {
  return pool.candidates.having(request.node_types).some((other) => isTaker(other, request, pool));
}

/** Returns true if another pool, which has not given the request up, serves its labels at the moment. */
export function isTakenElsewhere(request: NodeRequest, pool: OwnPool, abandonedBy: ReadonlySet<string>): boolean {
  const isTaken = (other: PoolComponentData): boolean => !abandonedBy.has(other.id) && isTaker(other, request, pool);
  return pool.candidates.having(request.node_types).some(isTaken);
}

/**
 * Returns true if another launcher serves the same pool and can use its provider. Its pool may be full of the launches
 * of this one.
 */
export function hasWorkingReplica({ node_types: labels }: NodeRequest, { id, place, candidates }: OwnPool): boolean {
  const isReplica = (other: PoolComponentData): boolean =>
    other.id !== id && isPoolAt(other, place) && !isOutOfService(other);
  return candidates.present().some((other) => isReplica(other) && hasLabels(other, labels));
}

/**
 * Returns true if the other pool, which has the labels, may serve a request that this pool leaves to it. Pools of other
 * providers leave a request for the provider of this pool to this pool.
 */
export function isTaker(other: PoolComponentData, request: NodeRequest, { id, place }: OwnPool): boolean {
  const isOfWantedProvider = request.provider !== place.provider || other.provider_name === request.provider;
  return isOfWantedProvider && isOther(other, request, id) && serves(other, request);
}

/** Returns the other pools that have all the labels and have not declined. */
export function otherCandidates(
  request: NodeRequest,
  { id: own, candidates }: Pick<Pool, 'id' | 'candidates'>,
): PoolComponentData[] {
  return candidates.having(request.node_types).filter((pool) => isOther(pool, request, own));
}

/** Returns true for a pool that is not `own` and has not declined. */
function isOther({ id }: PoolComponentData, request: NodeRequest, own: string): boolean {
  return id !== own && !request.declined_by.includes(id);
}
