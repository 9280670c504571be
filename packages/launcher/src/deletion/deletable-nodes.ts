/** Which nodes are to be deleted: those that were used, failed or given up, and those whose owner died. */

import type { Node, ProviderConfig } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';

/** True when a launcher that serves the node's provider shall delete it now. Only an unlocked node ever is. */
export function isToBeDeleted(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  if (entry.locked) return false;
  switch (entry.node.state) {
    case 'used':
    case 'in-use':
    case 'failed':
    case 'deleting':
    case 'deleted':
    case 'aborted':
      return true;
    case 'init':
    case 'building':
    case 'testing':
      return !isResumable(entry, store, provider);
    case 'ready':
    case 'hold':
      return false;
  }
}

/** Whether the launch of the node has not ended. */
export function isUnfinished({ state }: Pick<Node, 'state'>): boolean {
  return state === 'init' || state === 'building' || state === 'testing';
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
