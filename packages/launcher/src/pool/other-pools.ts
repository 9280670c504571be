/** The other pools that can serve a request. */

import type { NodeRequest } from '@nodepool/core';
import type { PoolComponentData } from '@nodepool/store';
import { serves } from '../precedence/serves.js';
import type { Pool } from './pool.js';

/** Returns true if another pool serves the labels of the request at the moment. */
export function canBeServedElsewhere(request: NodeRequest, pool: Pick<Pool, 'id' | 'candidates'>): boolean {
  return otherCandidates(request, pool).some((other) => serves(other, request));
}

/** Returns true if another pool, which has not given the request up, serves its labels at the moment. */
export function isTakenElsewhere(
  request: NodeRequest,
  pool: Pick<Pool, 'id' | 'candidates'>,
  abandonedBy: ReadonlySet<string>,
): boolean {
  return otherCandidates(request, pool).some((other) => !abandonedBy.has(other.id) && serves(other, request));
}

/** Returns the other pools that have all the labels and have not declined. */
export function otherCandidates(
  request: NodeRequest,
  { id: own, candidates }: Pick<Pool, 'id' | 'candidates'>,
): PoolComponentData[] {
  return candidates.having(request.node_types).filter((pool) => isOther(pool, request, own));
}

/** Returns true for a pool that is not `own` and has not declined. */
export function isOther({ id }: PoolComponentData, request: NodeRequest, own: string): boolean {
  return id !== own && !request.declined_by.includes(id);
}
