/** Records of requests and nodes in the form that this program writes and reads. */

import type { Clock, JsonObject, Node, RandomSource } from '@nodepool/core';
import type { LeasedNode, RequestSpec } from './api.js';

/**
 * Returns the record of a new request: the fields that Zuul's client writes, in the same order, and `reuse`, which Zuul
 * omits.
 */
export function requestRecord(spec: RequestSpec, requestor: string, clock: Clock, random: RandomSource): JsonObject {
  const now = clock.now() / 1000;
  return {
    requestor_data: spec.data ?? null,
    node_types: spec.labels,
    requestor,
    created_time: now,
    provider: spec.provider ?? null,
    state: 'requested',
    state_time: now,
    relative_priority: spec.relativePriority ?? 0,
    event_id: spec.eventId ?? random.uuidHex(),
    tenant_name: spec.tenant ?? null,
    ...(spec.reuse === false ? { reuse: false } : {}),
  };
}

/** Returns true if a record is the created one, ignoring changes by launchers. */
export function isSameRequest(record: JsonObject, created: JsonObject): boolean {
  const { state: _state, state_time: _time, relative_priority: _priority, ...fixed } = created;
  return Object.entries(fixed).every(([name, value]) => JSON.stringify(record[name]) === JSON.stringify(value));
}

/** Returns the public view of a node. `label` is the label for which it was requested. */
export function leasedNode(node: Node, label: string): LeasedNode {
  return {
    id: node.id,
    label,
    labels: node.type,
    state: node.state,
    provider: node.provider,
    pool: node.pool,
    cloud: node.cloud,
    region: node.region,
    availabilityZone: node.az,
    hostname: node.hostname,
    address: node.interface_ip,
    publicIpv4: node.public_ipv4,
    privateIpv4: node.private_ipv4,
    publicIpv6: node.public_ipv6,
    connectionType: node.connection_type,
    connectionPort: node.connection_port,
    username: node.username,
    hostKeys: node.host_keys,
    pythonPath: node.python_path,
    shellType: node.shell_type,
    attributes: node.attributes,
    resources: node.resources,
  };
}
