/** Recognizes the instances of a node in clouds that give the ids of deleted instances to new ones. */

import type { ExternalId } from '../../model/node.js';
import type { Instance, InstanceTags } from '../api.js';
import type { Listing } from '../state-machine-api.js';

/** The identity of a recorded instance, without its id. */
export interface InstanceIdentity {
  readonly provider: string;
  readonly installation: string;
  readonly nodeId: string;
  /** The launch attempt; null if the record does not contain it. */
  readonly attempt: string | null;
}

/** The instances that a listing shows under one id. `both`: the listing still shows a deleted one. */
export type ListedUnderId = 'own' | 'another' | 'both' | 'none';

/** Returns the identity of the instance that is created with the tags. */
export function identityOf(tags: InstanceTags): InstanceIdentity {
  return {
    provider: tags.nodepool_provider_name,
    installation: tags.nodepool_installation,
    nodeId: tags.nodepool_node_id,
    attempt: tags.nodepool_launch_attempt,
  };
}

/** Returns true if an instance with these tags is the recorded one. */
export function hasIdentity(tags: Instance['tags'], identity: InstanceIdentity): boolean {
  const { provider, installation, nodeId, attempt } = identity;
  if (tags.nodepool_provider_name !== provider) return false;
  if ((tags.nodepool_installation ?? installation) !== installation) return false;
  const createdBy = tags.nodepool_launch_attempt;
  // The record of a failed attempt has its own node id, which differs from that in the tags.
  if (attempt !== null && createdBy !== undefined) return createdBy === attempt;
  return tags.nodepool_node_id === nodeId;
}

export function listedUnder(listing: Listing, externalId: ExternalId, identity: InstanceIdentity): ListedUnderId {
  const listed = listing.allByExternalId(externalId);
  const own = listed.filter(({ tags }) => hasIdentity(tags, identity)).length;
  if (own === 0) return listed.length === 0 ? 'none' : 'another';
  return own === listed.length ? 'own' : 'both';
}

/** Returns the listing without the ids of instances that have another identity. */
export function ownListing(listing: Listing, identity: InstanceIdentity): Listing {
  const allByExternalId = (externalId: ExternalId): readonly Instance[] =>
    listing.allByExternalId(externalId).filter(({ tags }) => hasIdentity(tags, identity));
  return {
    round: listing.round,
    askedAt: listing.askedAt,
    allByExternalId,
    byExternalId: (externalId) => allByExternalId(externalId)[0],
    byTag: (tag, value) => listing.byTag(tag, value),
  };
}
