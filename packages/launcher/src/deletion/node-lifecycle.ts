/**
 * The stages of a node's life: which program moves it on, and when. A program writes a node under its lock; an unlocked node
 * that is not `ready` or on `hold` has lost its owner, and a launcher deletes or resumes it.
 */

import type { Node, NodeState, ProviderConfig } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';

/** A step to the next stage. `removed`: the record is gone. */
export interface LifecycleStep {
  readonly to: NodeState | 'removed';
  /** The part of the launcher that does the step, or another program. */
  readonly by: string;
  readonly when: string;
}

export interface LifecycleStage {
  /** The reaction of a launcher that serves the node's provider to an unlocked node in this stage. */
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
  { to: 'failed', by: 'RequestHandler', when: 'the attempts of the launch are used up' },
  { to: 'aborted', by: 'RequestHandler', when: 'the request waits for capacity, or is left to other pools' },
  { to: 'deleting', by: 'RequestHandler', when: 'the request has ended, or is put back' },
];

export const NODE_LIFECYCLE: Readonly<Record<NodeState, LifecycleStage>> = {
  init: {
    unlocked: 'resume or delete',
    next: [
      { to: 'building', by: 'RequestHandler', when: 'quota is confirmed and the launch begins' },
      ...ENDED,
      ABANDONED,
    ],
  },
  building: {
    unlocked: 'resume or delete',
    next: [{ to: 'ready', by: 'launchNode', when: 'the login of the instance answers' }, ...ENDED, ABANDONED],
  },
  /** Written by the existing Nodepool only. */
  testing: { unlocked: 'resume or delete', next: [...ENDED, ABANDONED] },
  ready: {
    unlocked: 'keep',
    next: [
      { to: 'in-use', by: 'the requestor', when: 'the request is fulfilled' },
      { to: 'hold', by: 'the operator', when: '`nodepool hold`' },
      { to: 'deleting', by: 'Evictor', when: 'a request needs the capacity of the free node' },
      { to: 'deleting', by: 'the operator', when: '`nodepool delete`' },
      EXPIRED,
    ],
  },
  'in-use': {
    unlocked: 'delete',
    next: [
      { to: 'used', by: 'the requestor', when: 'its work is done' },
      { to: 'hold', by: 'the requestor', when: 'its users want to look at the node' },
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

/** Returns true if a launcher that serves the node's provider shall delete it now. Only an unlocked node ever is. */
export function isToBeDeleted(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  if (entry.locked) return false;
  const { unlocked } = NODE_LIFECYCLE[entry.node.state];
  return unlocked === 'delete' || (unlocked === 'resume or delete' && !isResumable(entry, store, provider));
}

/** Returns true if the launch of the node has not ended. */
export function isUnfinished({ state }: Pick<Node, 'state'>): boolean {
  return NODE_LIFECYCLE[state].unlocked === 'resume or delete';
}

/** A launch whose request still waits goes on, in the hands of whoever takes the request over, unless nobody here could. */
function isResumable(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  const { allocated_to: requestId, pool, type } = entry.node;
  const request: RequestEntry | undefined = requestId === null ? undefined : store.requests.get(requestId);
  if (request?.request.state !== 'pending') return false;
  // Its holder may be about to lock the node that it has just made.
  if (request.locked) return true;
  const config = pool === null ? undefined : provider.pools.get(pool);
  return config !== undefined && type.every((label) => config.labels.has(label));
}
