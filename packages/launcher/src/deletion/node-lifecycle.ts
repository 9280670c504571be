/**
 * The stages of a node's life: which program moves the node to the next stage, and when. A program writes a node only
 * under its lock. An unlocked node that is neither `ready` nor on `hold` has lost its owner, and a launcher deletes or
 * resumes it.
 */

import type { Node, NodeRequest, NodeState, ProviderConfig } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';

/** A step to the next stage; `removed` means that the record is deleted. */
export interface LifecycleStep {
  readonly to: NodeState | 'removed';
  /** The class or function of the launcher that takes the step, or another program. */
  readonly by: string;
  readonly when: string;
}

export interface LifecycleStage {
  /** How a launcher that serves the node's provider reacts to an unlocked node in this stage. */
  readonly unlocked: 'keep' | 'delete' | 'resume or delete';
  readonly next: readonly LifecycleStep[];
}

const DELETED: LifecycleStep = { to: 'deleting', by: 'Deletions', when: 'the node is unlocked' };
const ABANDONED: LifecycleStep = {
  to: 'deleting',
  by: 'Deletions',
  when: 'the node is unlocked and no pool can resume its launch',
};
const EXPIRED: LifecycleStep = { to: 'deleting', by: 'NodeExpiration', when: 'the node is older than its limit' };
const ENDED: readonly LifecycleStep[] = [
  { to: 'failed', by: 'RequestFulfilment', when: 'the attempts of the launch are used up' },
  { to: 'aborted', by: 'RequestFulfilment', when: 'the request waits for capacity, or is left to other pools' },
  { to: 'deleting', by: 'RequestFulfilment', when: 'the request has ended, or is requeued' },
];

export const NODE_LIFECYCLE: Readonly<Record<NodeState, LifecycleStage>> = {
  init: {
    unlocked: 'resume or delete',
    next: [
      { to: 'building', by: 'RequestFulfilment', when: 'quota is confirmed and the launch begins' },
      ...ENDED,
      ABANDONED,
    ],
  },
  building: {
    unlocked: 'resume or delete',
    next: [{ to: 'ready', by: 'launchNode', when: 'the login of the instance answers' }, ...ENDED, ABANDONED],
  },
  /** Written only by the Python Nodepool. */
  testing: { unlocked: 'resume or delete', next: [...ENDED, ABANDONED] },
  ready: {
    unlocked: 'keep',
    next: [
      { to: 'in-use', by: 'the requestor', when: 'the request is fulfilled' },
      { to: 'hold', by: 'the operator', when: '`nodepool hold`' },
      { to: 'deleting', by: 'Evictor', when: 'a request needs the capacity of the free node' },
      { to: 'deleting', by: 'the operator', when: '`nodepool delete`' },
      EXPIRED,
      { to: 'deleting', by: 'SurplusNodes', when: 'no request needs the node for `max-idle-time`' },
    ],
  },
  'in-use': {
    unlocked: 'delete',
    next: [
      { to: 'used', by: 'the requestor', when: 'its work is done' },
      { to: 'hold', by: 'the requestor', when: 'its requestor puts it on hold for inspection' },
      DELETED,
    ],
  },
  used: { unlocked: 'delete', next: [DELETED] },
  hold: {
    unlocked: 'keep',
    next: [EXPIRED, { to: 'deleting', by: 'the operator', when: '`nodepool delete`' }],
  },
  failed: { unlocked: 'delete', next: [DELETED] },
  aborted: { unlocked: 'delete', next: [DELETED] },
  deleting: {
    unlocked: 'delete',
    next: [
      { to: 'removed', by: 'Deletions', when: 'the cloud has confirmed the deletion' },
      { to: 'deleted', by: 'Deletions', when: 'the same, while foreign znodes keep the record from being removed' },
    ],
  },
  deleted: {
    unlocked: 'delete',
    next: [DELETED, { to: 'removed', by: 'Deletions', when: 'the foreign znodes are removed' }],
  },
};

/**
 * Returns true if a launcher that serves the node's provider must delete the node now; always false for a locked node.
 */
export function isToBeDeleted(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  if (entry.locked) return false;
  const { unlocked } = NODE_LIFECYCLE[entry.node.state];
  return unlocked === 'delete' || (unlocked === 'resume or delete' && !isResumable(entry, store, provider));
}

/** Returns true if the launch of the node has not ended. */
export function isUnfinished({ state }: Pick<Node, 'state'>): boolean {
  return NODE_LIFECYCLE[state].unlocked === 'resume or delete';
}

/**
 * Returns the nodes, in any pool, with which a request continues that no launcher works on. Its other nodes are about
 * to be deleted; so are the launches of a request that was set back to `requested`.
 */
export function resumableNodes({ nodes }: Pick<Store, 'nodes'>, { id, state }: NodeRequest): readonly NodeEntry[] {
  return nodes
    .allocatedTo(id)
    .filter(({ node }) => node.state === 'ready' || (state === 'pending' && isUnfinished(node)));
}

/** Returns true if the node's request is still pending, and is locked or can be resumed by a pool of this provider. */
function isResumable(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  const { allocated_to: requestId, pool, type } = entry.node;
  const request: RequestEntry | undefined = requestId === null ? undefined : store.requests.get(requestId);
  if (request?.request.state !== 'pending') return false;
  // The pool that holds the lock may be about to lock the node that it has just created.
  if (request.locked) return true;
  const config = pool === null ? undefined : provider.pools.get(pool);
  return config !== undefined && type.every((label) => config.labels.has(label));
}
