/** Lists and deletes the resources that a crashed launcher may have left in a cluster. */

import { isDriverError, type Call, type Resource } from '@nodepool/core';
import type { KubernetesObject } from './client/objects.js';
import type { Cluster } from './cluster.js';
import { podExternalId } from './instance.js';
import type { Tags } from './identity.js';

/** A listed resource with the object that it stands for. */
interface ObjectResource extends Resource {
  readonly object: KubernetesObject;
}

/** Lists all tagged namespaces, projects or pods; the caller selects its own. */
export async function listResources(cluster: Cluster, call: Call): Promise<readonly Resource[]> {
  const { client, config } = cluster;
  if (cluster.namespaces === undefined) {
    const lists = await Promise.all(
      [...config.pools.keys()].map((pool) => client.list(cluster.instances(pool), {}, call)),
    );
    return lists.flatMap(({ items }) => items).flatMap((pod) => resourceOf(cluster, pod));
  }
  const selection = config.flavour === 'kubernetes' ? { labelSelector: `nodepool_provider_name=${config.name}` } : {};
  const { items } = await client.list(cluster.instances(), selection, call);
  return items.flatMap((space) => resourceOf(cluster, space));
}

/** Deletes a resource if its object still exists and has the same tags; a newer object of the name stays. */
export async function deleteResource(cluster: Cluster, resource: Resource, call: Call): Promise<void> {
  if (!isObjectResource(resource)) return;
  const { client } = cluster;
  const { name, namespace, uid } = resource.object;
  const collection = cluster.instances(namespace);
  try {
    const now = await cluster.getInstance(collection, name, call);
    if (now.uid !== uid || !sameTags(cluster.tagsOf(now), resource.tags)) return;
    await client.delete(collection, name, uid, call);
  } catch (error) {
    if (!isDriverError(error) || (error.code !== 'not-found' && error.code !== 'conflict')) throw error;
  }
}

function resourceOf(cluster: Cluster, object: KubernetesObject): readonly ObjectResource[] {
  const tags = cluster.tagsOf(object);
  if (tags['nodepool_provider_name'] === undefined) return [];
  const { name, namespace } = object;
  return [{ kind: 'instance', externalId: namespace === undefined ? name : podExternalId(object), name, tags, object }];
}

function isObjectResource(resource: Resource): resource is ObjectResource {
  return 'object' in resource;
}

function sameTags(one: Tags, other: Tags): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => one[name] === other[name]);
}
