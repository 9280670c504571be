/** Records for tests of lists. */
import type { Node, NodeRequest } from '@nodepool/core';
import type { NodeEntry, PoolComponentData, RequestEntry } from '@nodepool/store';

export function nodeEntry(node: Partial<Node>, locked = false): NodeEntry {
  const id = node.id ?? '0000000001';
  return {
    id,
    version: 0,
    locked,
    node: {
      state: 'ready',
      state_time: 0,
      created_time: null,
      provider: null,
      pool: null,
      launcher: null,
      type: [],
      allocated_to: null,
      external_id: null,
      hostname: null,
      cloud: null,
      region: null,
      az: null,
      host_id: null,
      interface_ip: null,
      public_ipv4: null,
      private_ipv4: null,
      public_ipv6: null,
      connection_type: null,
      connection_port: null,
      username: null,
      python_path: null,
      shell_type: null,
      host_keys: [],
      image_id: null,
      attributes: null,
      resources: null,
      slot: null,
      driver_data: null,
      tenant_name: null,
      requestor: null,
      comment: null,
      hold_job: null,
      hold_expiration: null,
      user_data: null,
      progress: null,
      ...node,
      id,
    },
  };
}

export function requestEntry(request: Partial<NodeRequest>): RequestEntry {
  const id = request.id ?? '200-0000000001';
  return {
    id,
    version: 0,
    locked: false,
    request: {
      state: 'requested',
      state_time: 0,
      node_types: [],
      nodes: [],
      declined_by: [],
      reuse: true,
      requestor: null,
      requestor_data: null,
      provider: null,
      relative_priority: 0,
      event_id: null,
      created_time: null,
      tenant_name: null,
      ...request,
      id,
    },
  };
}

export function pool(labels: readonly string[]): PoolComponentData {
  return {
    hostname: 'host',
    kind: 'pool',
    state: 'running',
    version: '1',
    model_api: 0,
    id: 'host-PoolWorker.cloud-main-0',
    name: 'main',
    provider_name: 'cloud',
    supported_labels: labels,
    priority: 100,
    paused: false,
  };
}

/** What the lists need of a store of nodes. */
export function nodesOf(...entries: NodeEntry[]): {
  all(): Iterable<NodeEntry>;
  get(id: string): NodeEntry | undefined;
} {
  return { all: () => entries, get: (id) => entries.find((entry) => entry.id === id) };
}
