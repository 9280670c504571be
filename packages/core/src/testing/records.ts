/** Records with default values, so that a test states only the relevant fields. */

import type { Node, NodeData } from '../model/node.js';
import type { NodeRequest } from '../model/request.js';

/** Returns a ready node with the given facts and default values. */
export function nodeWith(facts: Partial<Node>): Node {
  return {
    id: '0000000001',
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
    machine_type: null,
    interruption: null,
    ...facts,
  };
}

/** Returns the record data of a ready node with the given facts and default values. */
export function nodeDataWith(facts: Partial<NodeData>): NodeData {
  const { id: _id, ...data } = nodeWith(facts);
  return data;
}

/** Returns a request with the given facts and default values. */
export function requestWith(facts: Partial<NodeRequest>): NodeRequest {
  return {
    id: '200-0000000001',
    state: 'requested',
    state_time: 0,
    node_types: [],
    nodes: [],
    declined_by: [],
    decline_reasons: {},
    reuse: true,
    requestor: null,
    requestor_data: null,
    provider: null,
    relative_priority: 0,
    event_id: null,
    created_time: null,
    tenant_name: null,
    ...facts,
  };
}
