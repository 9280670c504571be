/** Compares a ready node with a complete listing of its cloud. */

import type { ExternalId, Instance, Listing, Node } from '@nodepool/core';

/** Time (ms) after a node became ready in which listings may lack its instance or show an earlier state. */
export const SETTLE_MS = 60_000;

/** A listing with the time of its request, in milliseconds since the epoch. */
export interface InstanceListing extends Listing {
  readonly requestedAt: number;
}

export type InstanceLoss =
  /** The listing lacks the instance. */
  | 'missing'
  /** The cloud has given the instance's id to an instance of another node. */
  | 'replaced'
  /** The cloud reports that the instance has failed, was taken away, or is being deleted. */
  | 'failed'
  /** The instance exists and does not run, e.g. because an operator has stopped it. */
  | 'stopped';

/** `unknown`: the listing is too old to contain the instance, or the node has no instance id. */
export type InstanceVerdict =
  { readonly kind: 'running' | 'unknown' } | { readonly kind: InstanceLoss; readonly reason: string };

export function isLost(verdict: InstanceVerdict): verdict is Extract<InstanceVerdict, { readonly reason: string }> {
  return 'reason' in verdict;
}

/** Returns what the listing says about the instance of a node in a state from `ready` on. */
export function verdictOf(node: Node, listing: InstanceListing): InstanceVerdict {
  const { external_id: id } = node;
  if (id === null) return { kind: 'unknown' };
  const instances = listing.allByExternalId(id);
  const own = instances.find((instance) => belongsTo(node, instance));
  const isSettled = listing.requestedAt >= node.state_time * 1000 + SETTLE_MS;
  if (own !== undefined) return verdictOfOwn(own, id, isSettled);
  if (!isSettled) return { kind: 'unknown' };
  if (instances.length === 0) return { kind: 'missing', reason: `the cloud does not list its instance ${named(id)}` };
  return { kind: 'replaced', reason: `the cloud lists an instance of another node as ${named(id)}` };
}

function verdictOfOwn({ deleted, failed, ready }: Instance, id: ExternalId, isSettled: boolean): InstanceVerdict {
  if (deleted) return { kind: 'failed', reason: `its instance ${named(id)} is deleted` };
  if (failed !== undefined) return { kind: 'failed', reason: `its instance ${named(id)} has failed: ${failed}` };
  if (ready) return { kind: 'running' };
  return isSettled ? { kind: 'stopped', reason: `its instance ${named(id)} does not run` } : { kind: 'unknown' };
}

/** Returns false if the tags of the instance name another node. Tags that are missing prove nothing. */
function belongsTo(node: Node, { tags }: Instance): boolean {
  const { nodepool_node_id: nodeId, nodepool_provider_name: provider } = tags;
  return (nodeId ?? node.id) === node.id && (provider ?? node.provider) === node.provider;
}

function named(id: ExternalId): string {
  return typeof id === 'string' ? id : JSON.stringify(id);
}
