import { objectAt, stringAt, type Call, type ExternalId, type Instance, type QuotaInformation } from '@nodepool/core';
import type { KubernetesObject } from './client/objects.js';
import type { Cluster } from './cluster.js';
import type { KubernetesLabel } from './config.js';
import { toLabelValue, type Tags } from './identity.js';
import { disruptionOf, hasEnded, nodeNameOf, podStateOf } from './pod-state.js';
import { needOf } from './quota.js';

/** Resolves with the instances from the watched caches, without a call to the cluster. */
export async function listInstances(cluster: Cluster, call: Call): Promise<readonly Instance[]> {
  const { namespaces } = cluster;
  if (namespaces === undefined) return (await cluster.currentPods(call)).map((pod) => podInstance(cluster, pod));
  const [listed, pods] = await Promise.all([namespaces.current(call), cluster.currentPods(call)]);
  const podOf = new Map(pods.map((pod) => [pod.namespace, pod]));
  return listed.flatMap((space) => {
    const tags = cluster.tagsOf(space);
    return tags['nodepool_provider_name'] === undefined
      ? []
      : [namespaceInstance(cluster, space, tags, podOf.get(space.name))];
  });
}

/** External id of a pod in an existing project, as the Python Nodepool writes it. */
export function podExternalId({ namespace = '', name }: Pick<KubernetesObject, 'namespace' | 'name'>): ExternalId {
  return `${namespace}-${name}`;
}

function namespaceInstance(
  cluster: Cluster,
  space: KubernetesObject,
  tags: Tags,
  pod: KubernetesObject | undefined,
): Instance {
  const label = labelOf(cluster, tags);
  const phase = stringAt(objectAt(space.data, 'status') ?? {}, 'phase');
  const isActive = phase === 'Active' && !space.isBeingDeleted;
  const hasPod = label?.type !== 'namespace' && cluster.config.flavour === 'kubernetes';
  const ready = hasPod ? pod !== undefined && podStateOf(pod).state === 'running' : true;
  return {
    externalId: space.name,
    ready: isActive && ready,
    // The node's record remains until the cluster no longer has the namespace.
    deleted: false,
    failed: isActive ? failureOf(pod) : 'it is being deleted',
    reclaimed: isActive ? reclaimedOf(pod) : undefined,
    tags,
    cloud: cluster.config.contextName,
    hostId: pod === undefined ? undefined : nodeNameOf(pod),
    resources: resourcesOf(label),
  };
}

function podInstance(cluster: Cluster, pod: KubernetesObject): Instance {
  const tags = cluster.tagsOf(pod);
  const label = labelOf(cluster, tags);
  return {
    externalId: podExternalId(pod),
    ready: podStateOf(pod).state === 'running',
    deleted: false,
    failed: pod.isBeingDeleted ? 'it is being deleted' : failureOf(pod),
    reclaimed: pod.isBeingDeleted ? disruptionOf(pod) : reclaimedOf(pod),
    tags,
    interfaceIp: pod.name,
    cloud: cluster.config.contextName,
    hostId: nodeNameOf(pod),
    // Quotas do not count pods that have ended, e.g. those of builds, which remain in a project.
    resources: label === undefined && hasEnded(pod) ? { instances: 0 } : resourcesOf(label),
  };
}

/** Returns the label of the configuration with which the node was launched. */
function labelOf({ config }: Cluster, tags: Tags): KubernetesLabel | undefined {
  if (tags['nodepool_provider_name'] !== config.name) return undefined;
  const pool = config.pools.get(tags['nodepool_pool_name'] ?? '');
  return [...(pool?.labels.values() ?? [])].find(({ name }) => toLabelValue(name) === tags['nodepool_node_label']);
}

function resourcesOf(label: KubernetesLabel | undefined): ReturnType<QuotaInformation['toResources']> {
  return label === undefined ? { instances: 1 } : needOf(label).toResources();
}

function failureOf(pod: KubernetesObject | undefined): string | undefined {
  const found = pod === undefined ? undefined : podStateOf(pod);
  if (found?.state !== 'failing' || found.failure !== 'ended') return undefined;
  return `${found.reason}: ${found.message}`;
}

/** Returns the end of a pod that the cluster takes away; undefined while it may still run. */
function reclaimedOf(pod: KubernetesObject | undefined): Instance['reclaimed'] {
  return pod === undefined || failureOf(pod) === undefined ? undefined : disruptionOf(pod);
}
