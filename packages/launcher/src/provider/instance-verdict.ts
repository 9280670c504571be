/** Compares nodes with a complete listing of their cloud. */

import type { ExternalId, Instance, InterruptionKind, Listing, Node } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';

/** Time (ms) after a node became ready in which listings may lack its instance or show an earlier state. */
export const SETTLE_MS = 60_000;

/** Node states with an instance that the cloud should list. */
const HAVE_INSTANCES: ReadonlySet<Node['state']> = new Set(['ready', 'in-use', 'used', 'hold']);

/** A listing with the time of its request, in milliseconds since the epoch. */
export interface InstanceListing extends Listing {
  readonly instances: readonly Instance[];
  readonly requestedAt: number;
}

/** The reason why an instance counts as lost. A ready node with such an instance is not handed out. */
export type InstanceLoss = InterruptionKind;

/** A loss that the latest listing shows. */
export interface Loss {
  readonly kind: InstanceLoss;
  readonly reason: string;
  /** `Clock.monotonic` milliseconds at which the first listing that shows it was requested. */
  readonly first: number;
}

/** Time from the first listing that lacks an instance to the one that confirms it, in milliseconds. */
export const CONFIRM_MS = 30_000;

/**
 * Time for which listings must show a loss before it counts, in milliseconds. A listing may lack an existing instance
 * for a moment. An operator, a migration or a reboot may stop an instance for a while.
 */
export const CONFIRMED_AFTER_MS: Readonly<Record<InstanceLoss, number>> = {
  reclaimed: 0,
  failed: 0,
  missing: CONFIRM_MS,
  replaced: CONFIRM_MS,
  stopped: 300_000,
};

/** Returns when the next listing may confirm a loss that this one has shown (`Clock.monotonic`, ms), or undefined. */
export function confirmationDue(losses: Iterable<Loss>, { askedAt }: InstanceListing): number | undefined {
  let due: number | undefined;
  for (const { first } of losses) {
    if (askedAt - first < CONFIRM_MS) due = Math.min(first + CONFIRM_MS, due ?? Infinity);
  }
  return due;
}

/** `unknown`: the listing is too old to contain the instance, or the node has no instance id. */
export type InstanceVerdict =
  | { readonly kind: 'running' | 'unknown' }
  | {
      readonly kind: InstanceLoss;
      readonly reason: string;
      /** Time at which the cloud ends the instance, in milliseconds since the epoch, if it is known. */
      readonly endsAt?: number | undefined;
    };

export function isLost(verdict: InstanceVerdict): verdict is Extract<InstanceVerdict, { readonly reason: string }> {
  return 'reason' in verdict;
}

/** Returns true for a loss that only the absence of an instance shows. */
export function isMissing(kind: InstanceLoss): boolean {
  return kind === 'missing' || kind === 'replaced';
}

/** A node with the loss that a listing shows. */
export interface Finding {
  readonly entry: NodeEntry;
  readonly verdict: Extract<InstanceVerdict, { readonly reason: string }>;
}

/** The nodes of a provider, compared with a listing. */
export interface Comparison {
  /** Number of nodes with an instance that the cloud should list, and of those whose instance it does not list. */
  readonly total: number;
  readonly missing: number;
  readonly lost: readonly Finding[];
  /** Nodes whose instance runs, although their record says that it is lost. */
  readonly foundAgain: readonly NodeEntry[];
}

/** Compares all nodes of a provider with a listing, in one pass: a provider may have tens of thousands. */
export function compare(entries: Iterable<NodeEntry>, listing: InstanceListing): Comparison {
  const lost: Finding[] = [];
  const foundAgain: NodeEntry[] = [];
  let total = 0;
  let missing = 0;
  for (const entry of entries) {
    const { node } = entry;
    if (!HAVE_INSTANCES.has(node.state) || node.external_id === null) continue;
    total += 1;
    const verdict = verdictOf(node, listing);
    if (isLost(verdict)) {
      if (isMissing(verdict.kind)) missing += 1;
      lost.push({ entry, verdict });
    } else if (verdict.kind === 'running' && node.interruption !== null) foundAgain.push(entry);
  }
  return { total, missing, lost, foundAgain };
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

function verdictOfOwn(instance: Instance, id: ExternalId, isSettled: boolean): InstanceVerdict {
  const { deleted, failed, ready, reclaimed } = instance;
  if (reclaimed !== undefined) {
    const reason = `the cloud takes its instance ${named(id)} away${failed === undefined ? '' : `: ${failed}`}`;
    return { kind: 'reclaimed', reason, endsAt: reclaimed.endsAt };
  }
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
