/** Servers and flavors in nova's format, by microversion. */

import type { NetworkStore } from '../network/networks.js';
import { isoMicros, isoSeconds } from '../text.js';
import { ZONE } from '../settings.js';
import type { Flavor, ServerRecord } from './records.js';
import { vmStateOf } from './servers.js';

/** Input of a view besides the record. */
export interface ViewContext {
  /** e.g. `http://127.0.0.1:20345/compute`. */
  readonly serviceUrl: string;
  /** Minor microversion. */
  readonly microversion: number;
  readonly networks: NetworkStore;
  /** Deletion time; a deleted server has the status DELETED in listings. */
  readonly deletedAt?: number;
}

const POWER_STATES: Readonly<Record<string, number>> = { ACTIVE: 1, SHUTOFF: 4 };

export function linksOf(kind: string, id: string, serviceUrl: string): object[] {
  return [
    { rel: 'self', href: `${serviceUrl}/v2.1/${kind}/${id}` },
    { rel: 'bookmark', href: `${serviceUrl}/${kind}/${id}` },
  ];
}

export function briefly(server: ServerRecord, { serviceUrl }: ViewContext): object {
  return { id: server.id, name: server.name, links: linksOf('servers', server.id, serviceUrl) };
}

export function serverView(server: ServerRecord, context: ViewContext): object {
  const { serviceUrl, deletedAt } = context;
  const { spec, taskState, fault, launchedAt, terminatedAt } = server;
  const gone = deletedAt !== undefined;
  const hasHost = server.hostId !== '' && server.status !== 'ERROR';
  return {
    id: server.id,
    name: server.name,
    status: gone ? 'DELETED' : server.status,
    tenant_id: server.project,
    user_id: server.userId,
    metadata: server.metadata,
    hostId: server.hostId,
    image:
      spec.imageId === null ? '' : { id: spec.imageId, links: linksOf('images', spec.imageId, serviceUrl).slice(1) },
    flavor: embeddedFlavor(spec.flavor, context),
    created: isoSeconds(server.createdAt),
    updated: isoSeconds(server.updatedAt),
    addresses: gone ? {} : addressesOf(server, context.networks),
    accessIPv4: '',
    accessIPv6: '',
    links: linksOf('servers', server.id, serviceUrl),
    'OS-DCF:diskConfig': 'MANUAL',
    ...(fault === null || gone
      ? {}
      : { fault: { code: fault.code, created: isoSeconds(fault.at), message: fault.message } }),
    ...(server.status === 'BUILD' || server.status === 'ACTIVE' ? { progress: 0 } : {}),
    'OS-EXT-AZ:availability_zone': hasHost || launchedAt !== null ? ZONE : '',
    config_drive: spec.configDrive ? 'True' : '',
    key_name: spec.keyName,
    'OS-SRV-USG:launched_at': launchedAt === null ? null : isoMicros(launchedAt),
    'OS-SRV-USG:terminated_at': terminatedAt === null ? null : isoMicros(terminatedAt),
    ...securityGroups(server, context.networks),
    'OS-EXT-STS:task_state': taskState,
    'OS-EXT-STS:vm_state': gone ? 'deleted' : vmStateOf(server),
    'OS-EXT-STS:power_state': gone ? 0 : (POWER_STATES[server.status] ?? (launchedAt === null ? 0 : 1)),
    'os-extended-volumes:volumes_attached': [...server.volumes.keys()].map((id) => ({ id })),
    ...laterAttributes(server, context.microversion),
  };
}

/** Returns the answer to a creation. */
export function createdView(server: ServerRecord, serviceUrl: string): object {
  return {
    id: server.id,
    links: linksOf('servers', server.id, serviceUrl),
    'OS-DCF:diskConfig': 'MANUAL',
    security_groups: server.spec.securityGroups.map((name) => ({ name })),
    adminPass: server.id.slice(0, 12),
  };
}

export function flavorView(flavor: Flavor, serviceUrl: string, microversion: number): object {
  return {
    id: flavor.id,
    name: flavor.name,
    ram: flavor.ram,
    disk: flavor.disk,
    swap: microversion >= 75 ? 0 : '',
    'OS-FLV-EXT-DATA:ephemeral': 0,
    'OS-FLV-DISABLED:disabled': false,
    vcpus: flavor.vcpus,
    'os-flavor-access:is_public': true,
    rxtx_factor: 1,
    links: linksOf('flavors', flavor.id, serviceUrl),
    ...(microversion >= 55 ? { description: null } : {}),
    ...(microversion >= 61 ? { extra_specs: {} } : {}),
  };
}

/** Returns the flavor's properties at the server's creation (since 2.47), or a link to the flavor. */
function embeddedFlavor(flavor: Flavor, { microversion, serviceUrl }: ViewContext): object {
  if (microversion < 47) return { id: flavor.id, links: linksOf('flavors', flavor.id, serviceUrl).slice(1) };
  const { vcpus, ram, disk, name } = flavor;
  return { vcpus, ram, disk, ephemeral: 0, swap: 0, original_name: name, extra_specs: {} };
}

function laterAttributes(server: ServerRecord, microversion: number): object {
  const { name, spec } = server;
  const attributes: readonly (readonly [since: number, key: string, value: unknown])[] = [
    [9, 'locked', false],
    [73, 'locked_reason', null],
    [19, 'description', spec.description ?? name],
    [26, 'tags', spec.tags],
    [63, 'trusted_image_certificates', null],
    [90, 'OS-EXT-SRV-ATTR:hostname', name],
    [71, 'server_groups', []],
  ];
  return Object.fromEntries(
    attributes.filter(([since]) => microversion >= since).map(([, key, value]) => [key, value]),
  );
}

/** Returns the addresses by network name: fixed ones, each followed by its floating one. */
function addressesOf(server: ServerRecord, networks: NetworkStore): Record<string, object[]> {
  const addresses: Record<string, object[]> = {};
  // Nova does not know the addresses before the server is active.
  if (server.status === 'BUILD') return addresses;
  const floating = [...networks.floatingIps.all()];
  for (const port of networks.portsOf(server.id)) {
    const network = networks.networks.get(port.networkId)?.name ?? port.networkId;
    const list = (addresses[network] ??= []);
    for (const { ip_address } of port.fixedIps) {
      list.push(addressView(ip_address, 'fixed', port.mac));
      for (const { portId, fixedIp, address } of floating) {
        if (portId === port.id && fixedIp === ip_address) list.push(addressView(address, 'floating', port.mac));
      }
    }
  }
  return addresses;
}

function addressView(addr: string, type: 'fixed' | 'floating', mac: string): object {
  return { version: addr.includes(':') ? 6 : 4, addr, 'OS-EXT-IPS:type': type, 'OS-EXT-IPS-MAC:mac_addr': mac };
}

/** Returns the groups of the server's ports, which nova queries from neutron. A server without ports has none. */
function securityGroups(server: ServerRecord, networks: NetworkStore): object {
  if (server.status === 'BUILD' || networks.portsOf(server.id).length === 0) return {};
  const named = server.spec.securityGroupIds.map((id) => ({ name: networks.securityGroups.get(id)?.name ?? id }));
  return { security_groups: named };
}
