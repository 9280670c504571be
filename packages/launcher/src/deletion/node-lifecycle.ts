/**
 * The reaction of a launcher to unlocked nodes. A program writes a node only under its lock, so an unlocked node that
 * is neither `ready` nor on `hold` has lost its owner, and a launcher deletes or resumes it.
 */

import { LAUNCHING_STATES, type Node, type NodeRequest, type NodeState, type ProviderConfig } from '@nodepool/core';
import type { NodeEntry, RequestEntry, Store } from '@nodepool/store';

/** States in which an unlocked node is complete and has no owner. */
const KEPT: readonly NodeState[] = ['ready', 'hold'];

/** Returns true if a launcher of the node's provider must delete the node now; always false for a locked node. */
export function isToBeDeleted(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  if (entry.locked) return false;
  if (isUnfinished(entry.node)) return !isResumable(entry, store, provider);
  return !KEPT.includes(entry.node.state);
}

/** Returns true if the launch of the node has not ended. */
export function isUnfinished({ state }: Pick<Node, 'state'>): boolean {
  return LAUNCHING_STATES.includes(state);
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

/** Returns true if the node's request is locked, or is still pending and can be resumed by a pool of this provider. */
function isResumable(entry: NodeEntry, store: Store, provider: ProviderConfig): boolean {
  const { allocated_to: requestId, pool, type } = entry.node;
  const request: RequestEntry | undefined = requestId === null ? undefined : store.requests.get(requestId);
  // The pool that holds the lock may be about to lock the node that it has just created.
  if (request?.locked === true) return true;
  if (request?.request.state !== 'pending') return false;
  const config = pool === null ? undefined : provider.pools.get(pool);
  return config !== undefined && type.every((label) => config.labels.has(label));
}
