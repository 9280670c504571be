/** The launcher's metrics. The statsd keys are those of the Python Nodepool, which dashboards and alerts use. */

import {
  statsdName as name,
  statsdPart as part,
  type Counter,
  type Duration,
  type Gauge,
  type Node,
} from '@nodepool/core';

const LAUNCH_SECONDS = [1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600];

/** Nodes that became ready and launch attempts that failed, timed from the start of the launch's first attempt. */
export const LAUNCHES: Duration<'provider' | 'az' | 'requestor' | 'result'> = {
  kind: 'duration',
  name: 'nodepool_launch_duration_seconds',
  help: 'Time from the first launch attempt until a node was ready or an attempt failed, by result.',
  labels: ['provider', 'az', 'requestor', 'result'],
  buckets: LAUNCH_SECONDS,
  // Dots in a result separate levels of the key.
  statsd: ({ provider, az, requestor, result }) => {
    const keys = [`nodepool.launch.${result}`, `nodepool.launch.provider.${name(provider)}.${result}`];
    if (az !== '') keys.push(`nodepool.launch.provider.${name(provider)}.${name(az)}.${result}`);
    if (requestor !== '') keys.push(`nodepool.launch.requestor.${part(requestor)}.${result}`);
    return keys;
  },
};

/** `reason` is the code of the driver's error, which is more specific than the result that statsd receives. */
export const FAILED_ATTEMPTS: Counter<'provider' | 'pool' | 'label' | 'reason'> = {
  kind: 'counter',
  name: 'nodepool_launch_attempts_failed_total',
  help: 'Failed launch attempts by error code.',
  labels: ['provider', 'pool', 'label', 'reason'],
  statsd: () => [],
};

/** 0: closed, 1: half-open, 2: open. Labels other than `provider` are empty for the breaker of a whole provider. */
export const BREAKER_STATES: Gauge<'provider' | 'pool' | 'label' | 'zone' | 'machine_type'> = {
  kind: 'gauge',
  name: 'nodepool_breaker_state',
  help: 'Circuit breakers of providers and of offers: 0 closed, 1 half-open, 2 open.',
  labels: ['provider', 'pool', 'label', 'zone', 'machine_type'],
  statsd: () => [],
};

/** `state` is the new one; `cause` is empty if it is `closed`. */
export const BREAKER_TRANSITIONS: Counter<'provider' | 'pool' | 'label' | 'zone' | 'machine_type' | 'state' | 'cause'> =
  {
    kind: 'counter',
    name: 'nodepool_breaker_transitions_total',
    help: 'Transitions of circuit breakers of providers and of offers, by new state and cause.',
    labels: ['provider', 'pool', 'label', 'zone', 'machine_type', 'state', 'cause'],
    statsd: () => [],
  };

export const NODES: Gauge<'state'> = {
  kind: 'gauge',
  name: 'nodepool_nodes',
  help: 'Nodes of the ensemble by state. Reported by one launcher.',
  labels: ['state'],
  statsd: ({ state }) => [`nodepool.nodes.${state}`],
};

export const LABEL_NODES: Gauge<'label' | 'state'> = {
  kind: 'gauge',
  name: 'nodepool_label_nodes',
  help: 'Nodes of the ensemble by label and state; one of several labels counts for each. Reported by one launcher.',
  labels: ['label', 'state'],
  statsd: ({ label, state }) => [`nodepool.label.${name(label)}.nodes.${state}`],
};

export const PROVIDER_NODES: Gauge<'provider' | 'state'> = {
  kind: 'gauge',
  name: 'nodepool_provider_nodes',
  help: 'Nodes of the ensemble by provider and state. Reported by one launcher.',
  labels: ['provider', 'state'],
  statsd: ({ provider, state }) => [`nodepool.provider.${name(provider)}.nodes.${state}`],
};

/** `state` is `in_service` or `out_of_service`. */
export const MACHINES: Gauge<'provider' | 'pool' | 'state'> = {
  kind: 'gauge',
  name: 'nodepool_machines',
  help: 'Supplied machines by state, as checked by each launcher.',
  labels: ['provider', 'pool', 'state'],
  statsd: ({ provider, pool, state }) => [`nodepool.provider.${name(provider)}.pool.${name(pool)}.machines.${state}`],
};

export const ADDRESSABLE_REQUESTS: Gauge<'provider' | 'pool'> = {
  kind: 'gauge',
  name: 'nodepool_pool_addressable_requests',
  help: 'Requests whose labels the pool has. Reported by one launcher.',
  labels: ['provider', 'pool'],
  statsd: ({ provider, pool }) => [`nodepool.provider.${name(provider)}.pool.${name(pool)}.addressable_requests`],
};

/** `limit` is `max_servers`, `max_cores`, `max_ram`, …; unlimited resources are not reported. */
export const PROVIDER_LIMITS: Gauge<'provider' | 'limit'> = {
  kind: 'gauge',
  name: 'nodepool_provider_limit',
  help: 'Configured limits of the provider: the sum over its pools.',
  labels: ['provider', 'limit'],
  statsd: ({ provider, limit }) => [`nodepool.provider.${name(provider)}.${part(limit)}`],
};

/** `limit` is `instances`, `cores`, `ram`, … */
export const TENANT_LIMITS: Gauge<'tenant' | 'limit'> = {
  kind: 'gauge',
  name: 'nodepool_tenant_limit',
  help: 'Configured limits of the tenant in all providers together.',
  labels: ['tenant', 'limit'],
  statsd: ({ tenant, limit }) => [`nodepool.tenant_limits.${part(tenant)}.${part(limit)}`],
};

export const UNRECORDED_RESOURCES: Gauge<'provider' | 'kind'> = {
  kind: 'gauge',
  name: 'nodepool_resources_without_record',
  help: 'Resources of this installation in the cloud that no record names for a minute, by kind.',
  labels: ['provider', 'kind'],
  statsd: () => [],
};

/** 1 while deletions of resources without a record are suspended; `provider` is empty for those of all providers. */
export const SUSPENDED_DELETIONS: Gauge<'provider'> = {
  kind: 'gauge',
  name: 'nodepool_deletions_suspended',
  help: '1 while deletions of resources without a record are suspended. An empty provider stands for all.',
  labels: ['provider'],
  statsd: () => [],
};

/** `kind` is `Resource.kind`, e.g. `instance`. */
export const LEAKED_RESOURCES: Counter<'provider' | 'kind'> = {
  kind: 'counter',
  name: 'nodepool_leaked_resources_total',
  help: 'Leaked resources that were deleted from clouds.',
  labels: ['provider', 'kind'],
  statsd: ({ provider, kind }) => [`nodepool.provider.${name(provider)}.leaked.${part(kind.replaceAll('-', ''))}s`],
};

/** `reason` is `reclaimed`, `missing`, `replaced`, `failed` or `stopped`. */
export const LOST_NODES: Counter<'provider' | 'reason'> = {
  kind: 'counter',
  name: 'nodepool_lost_ready_nodes_total',
  help: 'Ready nodes that were deleted because their instance is reclaimed, missing, replaced, failed or stopped.',
  labels: ['provider', 'reason'],
  statsd: () => [],
};

/** `state` is that of the node: `ready`, `in-use` or `hold`. */
export const INTERRUPTED_NODES: Counter<'provider' | 'pool' | 'label' | 'zone' | 'machine_type' | 'state' | 'reason'> =
  {
    kind: 'counter',
    name: 'nodepool_interrupted_nodes_total',
    help: 'Nodes whose instance the cloud has taken away, or that lost it otherwise, by offer, state and reason.',
    labels: ['provider', 'pool', 'label', 'zone', 'machine_type', 'state', 'reason'],
    statsd: ({ provider }) => [`nodepool.provider.${name(provider)}.interrupted`],
  };

/** Returns the labels that name the offer of a node. */
export function offerLabels({
  pool,
  type,
  az,
  machine_type: machineType,
}: Pick<Node, 'pool' | 'type' | 'az' | 'machine_type'>): Readonly<
  Record<'pool' | 'label' | 'zone' | 'machine_type', string>
> {
  return { pool: pool ?? '', label: type[0] ?? '', zone: az ?? '', machine_type: machineType ?? '' };
}

export const UNUSABLE_NODES: Gauge<'provider' | 'reason'> = {
  kind: 'gauge',
  name: 'nodepool_unusable_ready_nodes',
  help: 'Ready nodes that are not handed out because their instance is reclaimed, missing, replaced, failed or stopped.',
  labels: ['provider', 'reason'],
  statsd: () => [],
};

/** `queue` is `client.connection_queue`, `node_cache.event_queue`, … */
export const ZOOKEEPER_QUEUES: Gauge<'host' | 'queue'> = {
  kind: 'gauge',
  name: 'nodepool_zookeeper_queue',
  help: 'Lengths of the queues between the launcher and ZooKeeper.',
  labels: ['host', 'queue'],
  statsd: ({ host, queue }) => [`nodepool.launcher.${part(host)}.zk.${queue}`],
};

/** The value is always 1; the information is in the labels. */
export const DRIVER_INFO: Gauge<'driver' | 'package' | 'version' | 'api'> = {
  kind: 'gauge',
  name: 'nodepool_driver_info',
  help: 'Drivers that the configuration uses, with package, version, and version of the driver API. Always 1.',
  labels: ['driver', 'package', 'version', 'api'],
  statsd: () => [],
};

export const UNREADY_LABELS: Gauge<'provider' | 'pool' | 'label'> = {
  kind: 'gauge',
  name: 'nodepool_label_not_ready',
  help: '1 while a pool cannot serve a label, e.g. because its image, machine type or network is missing in the cloud.',
  labels: ['provider', 'pool', 'label'],
  statsd: () => [],
};
