/** The launcher's metrics. The statsd keys are those of the Python Nodepool, which dashboards and alerts use. */

import type { Node } from '@nodepool/core';
import { counter, duration, gauge, statsdName as name, statsdPart as part } from '@nodepool/core';

const LAUNCH_SECONDS = [1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600];

/** Nodes that became ready and launch attempts that failed, timed from the start of the launch's first attempt. */
export const LAUNCHES = duration(
  'nodepool_launch_duration_seconds',
  ['provider', 'az', 'requestor', 'result'],
  'Time from the first launch attempt until the node was ready or an attempt failed.',
  LAUNCH_SECONDS,
  // Dots in a result separate levels of the key.
  ({ provider, az, requestor, result }) => {
    const keys = [`nodepool.launch.${result}`, `nodepool.launch.provider.${name(provider)}.${result}`];
    if (az !== '') keys.push(`nodepool.launch.provider.${name(provider)}.${name(az)}.${result}`);
    if (requestor !== '') keys.push(`nodepool.launch.requestor.${part(requestor)}.${result}`);
    return keys;
  },
);

/** `reason` is the code of the driver's error, which is more specific than the result that statsd receives. */
export const FAILED_ATTEMPTS = counter(
  'nodepool_launch_attempts_failed_total',
  ['provider', 'pool', 'label', 'reason'],
  'Failed launch attempts.',
);

/** 0: closed, 1: half-open, 2: open. Labels other than `provider` are empty for the breaker of a whole provider. */
export const BREAKER_STATES = gauge(
  'nodepool_breaker_state',
  ['provider', 'pool', 'label', 'zone', 'machine_type'],
  'Circuit breakers: 0 closed, 1 half-open, 2 open.',
);

/** `state` is the new one; `cause` is empty if it is `closed`. */
export const BREAKER_TRANSITIONS = counter(
  'nodepool_breaker_transitions_total',
  ['provider', 'pool', 'label', 'zone', 'machine_type', 'state', 'cause'],
  'Transitions of circuit breakers.',
);

export const NODES = gauge('nodepool_nodes', ['state'], 'Nodes (one launcher).', ({ state }) => [
  `nodepool.nodes.${state}`,
]);

export const LABEL_NODES = gauge(
  'nodepool_label_nodes',
  ['label', 'state'],
  'Nodes, each counted for all of its labels (one launcher).',
  ({ label, state }) => [`nodepool.label.${name(label)}.nodes.${state}`],
);

export const PROVIDER_NODES = gauge(
  'nodepool_provider_nodes',
  ['provider', 'state'],
  'Nodes (one launcher).',
  ({ provider, state }) => [`nodepool.provider.${name(provider)}.nodes.${state}`],
);

/** `state` is `in_service` or `out_of_service`. */
export const MACHINES = gauge(
  'nodepool_machines',
  ['provider', 'pool', 'state'],
  'Supplied machines, as checked by each launcher.',
  ({ provider, pool, state }) => [`nodepool.provider.${name(provider)}.pool.${name(pool)}.machines.${state}`],
);

export const ADDRESSABLE_REQUESTS = gauge(
  'nodepool_pool_addressable_requests',
  ['provider', 'pool'],
  'Requests whose labels the pool has (one launcher).',
  ({ provider, pool }) => [`nodepool.provider.${name(provider)}.pool.${name(pool)}.addressable_requests`],
);

/** `limit` is `max_servers`, `max_cores`, `max_ram`, …; unlimited resources are not reported. */
export const PROVIDER_LIMITS = gauge(
  'nodepool_provider_limit',
  ['provider', 'limit'],
  'Configured limits, summed over the pools of each launcher.',
  ({ provider, limit }) => [`nodepool.provider.${name(provider)}.${part(limit)}`],
);

/** `limit` is `instances`, `cores`, `ram`, … */
export const TENANT_LIMITS = gauge(
  'nodepool_tenant_limit',
  ['tenant', 'limit'],
  'Configured limits in all providers together.',
  ({ tenant, limit }) => [`nodepool.tenant_limits.${part(tenant)}.${part(limit)}`],
);

export const UNRECORDED_RESOURCES = gauge(
  'nodepool_resources_without_record',
  ['provider', 'kind'],
  'Resources in the cloud without a record for a minute.',
);

/** 1 while deletions of resources without a record are suspended; `provider` is empty for those of all providers. */
export const SUSPENDED_DELETIONS = gauge(
  'nodepool_deletions_suspended',
  ['provider'],
  '1 while deletions of resources without a record are suspended. An empty provider: of all.',
);

/** `kind` is `Resource.kind`, e.g. `instance`. */
export const LEAKED_RESOURCES = counter(
  'nodepool_leaked_resources_total',
  ['provider', 'kind'],
  'Leaked resources that were deleted; several launchers of a provider may count the same one.',
  ({ provider, kind }) => [`nodepool.provider.${name(provider)}.leaked.${part(kind.replaceAll('-', ''))}s`],
);

/** `reason` is `reclaimed`, `missing`, `replaced`, `failed` or `stopped`. */
export const LOST_NODES = counter(
  'nodepool_lost_ready_nodes_total',
  ['provider', 'reason'],
  'Ready nodes deleted because their instance is reclaimed, missing, replaced, failed or stopped.',
);

/** `state` is that of the node: `ready`, `in-use` or `hold`. */
export const INTERRUPTED_NODES = counter(
  'nodepool_interrupted_nodes_total',
  ['provider', 'pool', 'label', 'zone', 'machine_type', 'state', 'reason'],
  'Nodes that lost their instance, e.g. because the cloud took it away.',
  ({ provider }) => [`nodepool.provider.${name(provider)}.interrupted`],
);

type OfferLabels = Readonly<Record<'pool' | 'label' | 'zone' | 'machine_type', string>>;

/** Returns the labels that name the offer of a node. */
export function offerLabels(node: Pick<Node, 'pool' | 'type' | 'az' | 'machine_type'>): OfferLabels {
  const { pool, type, az, machine_type: machineType } = node;
  return { pool: pool ?? '', label: type[0] ?? '', zone: az ?? '', machine_type: machineType ?? '' };
}

export const UNUSABLE_NODES = gauge(
  'nodepool_unusable_ready_nodes',
  ['provider', 'reason'],
  'Ready nodes not handed out because their instance is reclaimed, missing, replaced, failed or stopped.',
);

/** `queue` is `client.connection_queue`, `node_cache.event_queue`, … */
export const ZOOKEEPER_QUEUES = gauge(
  'nodepool_zookeeper_queue',
  ['host', 'queue'],
  'Lengths of the queues to ZooKeeper.',
  ({ host, queue }) => [`nodepool.launcher.${part(host)}.zk.${queue}`],
);

/** The value is always 1; the information is in the labels. */
export const DRIVER_INFO = gauge(
  'nodepool_driver_info',
  ['driver', 'package', 'version', 'api'],
  'Drivers in use. Always 1.',
);

export const UNREADY_LABELS = gauge(
  'nodepool_label_not_ready',
  ['provider', 'pool', 'label'],
  '1 while the pool cannot serve the label, e.g. because its image or network is missing in the cloud.',
);

export const READY_TARGETS = gauge(
  'nodepool_label_ready_target',
  ['label'],
  'Ready nodes that the label should have now.',
);
