import type { Instance, Resources } from '@nodepool/core';
import { chooseAddresses, interfaceAddress, type AddressFacts } from './addresses.js';
import type { Flavor } from './client/compute.js';
import type { Server } from './client/server.js';

export interface ServerInstance extends Instance {
  readonly server: Server;
}

/** Additional facts needed to describe a server. */
export interface InstanceFacts extends AddressFacts {
  /** Flavors, for clouds whose servers contain only the flavor's id. */
  readonly flavors: readonly Flavor[];
  readonly cloud: string;
  readonly region: string | undefined;
  /** True if nodes are reached at private addresses regardless of the pool's configuration. */
  readonly private: boolean;
}

const DELETED_STATES = new Set(['DELETED', 'SOFT_DELETED']);

/** `volumeSizes` are the known sizes of volumes (GB) by id. */
export function instanceOf(
  server: Server,
  facts: InstanceFacts,
  volumeSizes: ReadonlyMap<string, number> = new Map(),
): ServerInstance {
  const chosen = chooseAddresses(server, facts);
  const interfaceIp = interfaceAddress(chosen, facts.private);
  // As in the records of the Python Nodepool, if the server has another address.
  const missing = interfaceIp === undefined ? undefined : '';
  return {
    server,
    externalId: server.id,
    hostname: server.name === '' ? undefined : server.name,
    ready: server.status === 'ACTIVE' && server.addresses.length > 0,
    // A server counts against the quota until the cloud no longer lists it, even while it is being deleted.
    deleted: DELETED_STATES.has(server.status),
    failed: failureOf(server),
    tags: server.metadata,
    interfaceIp,
    publicIpv4: chosen.publicIpv4 ?? missing,
    // As in the Python Nodepool: jobs with several nodes connect them at their private addresses.
    privateIpv4: chosen.privateIpv4 ?? chosen.publicIpv4 ?? missing,
    publicIpv6: chosen.publicIpv6 ?? missing,
    cloud: facts.cloud,
    region: facts.region,
    az: server.availabilityZone,
    hostId: server.hostId,
    machine: machineOf(server, facts),
    resources: resourcesOf(server, facts, volumeSizes),
  };
}

/** Returns the server of an instance that this driver has listed. */
export function serverOf(instance: Instance): Server | undefined {
  return isServerInstance(instance) ? instance.server : undefined;
}

function isServerInstance(instance: Instance): instance is ServerInstance {
  return 'server' in instance;
}

function failureOf({ status, task, fault }: Server): string | undefined {
  if (status === 'ERROR') return fault ?? 'the cloud gives no reason';
  return task === 'deleting' || DELETED_STATES.has(status) ? 'it is being deleted' : undefined;
}

function machineOf({ flavor }: Server, facts: InstanceFacts): Instance['machine'] {
  const type = flavorIn(flavor, facts)?.name;
  return type === undefined ? undefined : { type };
}

function flavorIn(
  flavor: Server['flavor'],
  { flavors }: InstanceFacts,
): { readonly vcpus: number; readonly ram: number; readonly name?: string } | undefined {
  return 'id' in flavor ? flavors.find(({ id }) => id === flavor.id) : flavor;
}

function resourcesOf(
  { flavor, volumes }: Server,
  facts: InstanceFacts,
  volumeSizes: ReadonlyMap<string, number>,
): Resources {
  const size = flavorIn(flavor, facts);
  const known = volumes.flatMap((id) => volumeSizes.get(id) ?? []);
  return {
    instances: 1,
    ...(size === undefined ? {} : { cores: size.vcpus, ram: size.ram }),
    ...(volumes.length === 0 ? {} : { volumes: volumes.length }),
    ...(known.length === 0 ? {} : { 'volume-gb': known.reduce((sum, size) => sum + size, 0) }),
  };
}
