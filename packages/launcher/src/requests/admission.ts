/** Admission, the first stage of a request: the pool admits it, leaves it to other pools or declines it. */

import { shortened, type NodeRequest, type NodeRequestData } from '@nodepool/core';
import { isPoolAt, LAUNCHER_RETURN_MS } from '@nodepool/store';
import type { NodeEntry, PoolComponentData, RequestEntry } from '@nodepool/store';
import type { Refusal, Wait } from '@nodepool/status';
import type { Candidates } from '../pool/candidate-pools.js';
import { canBeServedElsewhere, hasWorkingReplica, isTaker, otherCandidates } from '../pool/other-pools.js';
import { hasLabels } from '../precedence/serves.js';
import type { Pool } from '../pool/pool.js';
import { resumableNodes } from '../deletion/node-lifecycle.js';

export type AdmissionDecision =
  /** The pool serves it as soon as there is capacity. */
  | { readonly kind: 'admit' }
  /**
   * Other pools go first, or another launcher in this pool; evaluated again when the registry or the request changes.
   */
  | ({ readonly kind: 'leave'; readonly isToLauncher?: boolean } & Refusal)
  /** The pool has declined it, and other pools have not; evaluated again like `leave`. */
  | { readonly kind: 'declined' }
  /** It cannot be served here yet; evaluated again when that may have changed. */
  | { readonly kind: 'wait'; readonly wait: Wait }
  | ({ readonly kind: 'decline' } & Refusal)
  /** It continues in another pool, which has its nodes. */
  | { readonly kind: 'ignore' };

/** The part of the pool that admission depends on. */
export type AdmittingPool = Pick<
  Pool,
  | 'id'
  | 'name'
  | 'context'
  | 'place'
  | 'config'
  | 'labels'
  | 'candidates'
  | 'hasNodesOf'
  | 'isUsableByOthersOnly'
  | 'obstacle'
  | 'waitsFor'
>;

/** Pools of this launcher that could not launch the nodes of a request. */
export interface FailedPools {
  /** Their ids. */
  readonly abandonedBy: ReadonlySet<string>;
  /** The pools among them that failed recently and leave the request to other pools for a while. */
  readonly deferredBy: ReadonlySet<string>;
}

const NO_FAILED_POOLS: FailedPools = { abandonedBy: new Set(), deferredBy: new Set() };

/** Decides about a request for one pool. `candidates.complete` must be true. */
export function evaluate(
  { request }: RequestEntry,
  pool: AdmittingPool,
  { abandonedBy, deferredBy }: FailedPools = NO_FAILED_POOLS,
): AdmissionDecision {
  const { candidates } = pool;
  if (request.state === 'pending' && belongsElsewhere(request, pool)) return { kind: 'ignore' };
  const others = (): PoolComponentData[] => otherCandidates(request, pool);
  if (request.declined_by.includes(pool.id)) {
    // Pools that had not decided when this one declined may have left since.
    return allDeclined(request, request.declined_by, candidates)
      ? {
          kind: 'decline',
          cause: 'order',
          reason: request.decline_reasons[pool.id] ?? 'every registered pool has declined',
        }
      : { kind: 'declined' };
  }
  // A request that has nodes in this pool is served here, even if another pool is preferred otherwise.
  const resumable = pool.hasNodesOf(request);
  if (!resumable && request.provider !== null && request.provider !== pool.place.provider) {
    const preferred = others().some((other) => other.provider_name === request.provider);
    if (preferred) return { kind: 'leave', cause: 'order', reason: `provider ${request.provider} is preferred` };
  }
  const missing = request.node_types.find((label) => pool.labels.label(label) === undefined);
  if (missing !== undefined) {
    const cause = 'label';
    const reason = `this pool has no label ${missing}`;
    if (others().length > 0) return { kind: 'leave', cause, reason };
    if (candidates.mayReturn(missing)) {
      const wait = `its launcher has just started and waits ${LAUNCHER_RETURN_MS / 60_000} minutes for one that has it`;
      return { kind: 'leave', cause, reason: `${reason}; ${wait}` };
    }
    const isUnknown = candidates.having([missing]).length === 0;
    return {
      kind: 'decline',
      cause,
      reason: isUnknown
        ? `no pool has label ${missing}`
        : `${reason}, and no pool that has not declined has all the labels`,
    };
  }
  if (request.node_types.length === 0) return { kind: 'decline', cause: 'label', reason: 'the request names no label' };
  if (pool.config.maxServers <= 0)
    return { kind: 'decline', cause: 'limit', reason: 'the pool is disabled (max-servers)' };
  if (resumable && pool.isUsableByOthersOnly && hasWorkingReplica(request, pool)) {
    return { kind: 'leave', isToLauncher: true, cause: 'order', reason: 'this one cannot use the provider' };
  }
  const wait = pool.waitsFor(request);
  if (wait !== undefined) return { kind: 'wait', wait };
  const obstacle = pool.obstacle(request);
  if (obstacle !== undefined) return { kind: 'decline', ...obstacle };
  const { priority } = pool.config;
  const ahead = resumable
    ? undefined
    : candidates
        .having(request.node_types)
        .find((other) => other.priority < priority && isTaker(other, request, pool) && !abandonedBy.has(other.id));
  if (ahead !== undefined) return { kind: 'leave', cause: 'order', reason: `pool ${ahead.id} has a higher priority` };
  if (!resumable && deferredBy.has(pool.id) && canBeServedElsewhere(request, pool)) {
    return { kind: 'leave', cause: 'launch', reason: 'another pool can serve it, which this one could not' };
  }
  return { kind: 'admit' };
}

/** Limits of the reasons in a record: the number of pools, and the length of each, in characters. */
const MAX_REASONS = 20;
const MAX_REASON_LENGTH = 500;

/** Returns the change of a request that this pool declines. It becomes `failed` if all pools have declined. */
export function afterDecline(
  request: NodeRequest,
  { id, candidates }: Pick<Pool, 'id' | 'candidates'>,
  reason: string,
): Pick<NodeRequestData, 'state' | 'declined_by' | 'decline_reasons'> {
  const declinedBy = request.declined_by.includes(id) ? request.declined_by : [...request.declined_by, id];
  const failed = candidates.complete && allDeclined(request, declinedBy, candidates);
  const reasons = Object.entries(request.decline_reasons).slice(-(MAX_REASONS - 1));
  return {
    state: failed ? 'failed' : 'requested',
    declined_by: declinedBy,
    decline_reasons: { ...Object.fromEntries(reasons), [id]: shortened(reason, MAX_REASON_LENGTH) },
  };
}

/** Returns true if nodes of a lost request are in another pool, configured or registered with the request's labels. */
function belongsElsewhere(request: NodeRequest, { context, candidates, name }: AdmittingPool): boolean {
  const isServed = ({ node }: NodeEntry): boolean =>
    candidates.present().some((each) => isPoolAt(each, node) && hasLabels(each, request.node_types));
  const entry = resumableNodes(context.store, request).find(isServed);
  return entry !== undefined && `${entry.node.provider ?? ''}/${entry.node.pool ?? ''}` !== name;
}

function allDeclined(
  { node_types: labels }: NodeRequest,
  declinedBy: readonly string[],
  candidates: Candidates,
): boolean {
  const declined = ({ id }: PoolComponentData): boolean => declinedBy.includes(id);
  return candidates.present().every(declined) && candidates.having(labels).every(declined);
}
