/** The records of the floor. They have the sizes of those that a launcher with the example driver writes. */

import { systemClock } from '@nodepool/core';

export function initialNode(label: string, request: string): string {
  return node('init', label, request, NO_INSTANCE);
}

export function launchingNode(label: string, request: string): string {
  return node('building', label, request, NO_INSTANCE, LAUNCH);
}

export function readyNode(label: string, request: string): string {
  return node('ready', label, request, INSTANCE);
}

export function deletingNode(label: string): string {
  return node('deleting', label, '200-0000000000', INSTANCE, DELETION);
}

export function pendingRequest(request: string): string {
  return request.replace('"requested"', '"pending"');
}

export function fulfilledRequest(request: string, node: string): string {
  return request.replace('"requested"', '"fulfilled"').replace(/\}$/, `,"nodes":["${node}"]}`);
}

interface Instance {
  readonly cloud: string;
  readonly addresses: string;
  readonly id: string;
}

const NO_INSTANCE: Instance = {
  cloud: 'null',
  addresses: '"public_ipv4": null, "private_ipv4": null, "public_ipv6": null, "interface_ip": null',
  id: 'null',
};
const INSTANCE: Instance = {
  cloud: '"example"',
  addresses:
    '"public_ipv4": "198.18.0.1", "private_ipv4": "10.0.0.1", "public_ipv6": "2001:db8::1", "interface_ip": "198.18.0.1"',
  id: '"i-5d694be5-000002"',
};
const LAUNCH = progress('launch', '1b452c525eda456c8529d0e9e69c23d5');
const DELETION = progress('deletion', '');
const LAUNCHER = 'host-PoolWorker.example-main-16a33fea0656407381b1a1fa0c2ea2ac';

function progress(kind: string, attempt: string): string {
  return `, "progress": {"kind":"${kind}","attempt":"${attempt}","number":1,"started":1795748197.607,"machine":null}`;
}

function node(state: string, label: string, request: string, { cloud, addresses, id }: Instance, more = ''): string {
  const now = systemClock.now() / 1000;
  return (
    `{"state": "${state}", "state_time": ${now}, "cloud": ${cloud}, "provider": "example", "pool": "main", ` +
    `"type": ["${label}"], "allocated_to": "${request}", "az": "zone-1", "region": null, ${addresses}, ` +
    `"host_id": null, "connection_port": 22, "image_id": "${label}", "launcher": "${LAUNCHER}", ` +
    `"created_time": ${now}, "external_id": ${id}, "hostname": null, "comment": null, "user_data": null, ` +
    `"hold_job": null, "host_keys": [], "username": "zuul", "connection_type": "ssh", "shell_type": null, ` +
    `"hold_expiration": null, "resources": {"instances":1,"cores":1,"ram":1024}, "slot": null, "attributes": {}, ` +
    `"python_path": "auto", "tenant_name": null, "driver_data": null, "requestor": "bench", "ssh_port": 22${more}}`
  );
}
