/** Calls to the network service (neutron, API v2.0), and the properties that the driver reads from its answers. */

import { booleanAt, entriesAt, objectAt, stringAt, type Call, type JsonObject } from '@nodepool/core';
import { memberOf, requiredText } from './answers.js';
import { allPages, MissingListError } from './pages.js';
import type { ServiceRequest, Session } from './session.js';

const LIST_TIMEOUT_MS = 110_000;

export interface Network {
  readonly id: string;
  readonly name: string;
  /** True if floating addresses can be allocated from it. */
  readonly external: boolean;
  readonly isDefault: boolean;
  readonly projectId: string | undefined;
}

export interface Port {
  readonly id: string;
  readonly name: string;
  readonly networkId: string;
  /** `ACTIVE`, `DOWN`, … */
  readonly status: string;
  /** Id of the server that uses the port, or ''. */
  readonly deviceId: string;
  /** e.g. `compute:nova`, or ''. */
  readonly deviceOwner: string;
  readonly fixedIps: readonly string[];
}

export interface FloatingIp {
  readonly id: string;
  readonly address: string;
  /** `ACTIVE`, `DOWN`, `ERROR`. */
  readonly status: string;
  readonly portId: string | undefined;
  /** Id of the server behind the port, if the cloud reports it. */
  readonly deviceId: string | undefined;
  readonly description: string;
}

export interface FloatingIpSpec {
  readonly networkId: string;
  readonly portId: string;
  readonly fixedIp: string;
  /** At most 255 characters. */
  readonly description: string;
}

const PORT_FIELDS = ['id', 'name', 'network_id', 'status', 'device_id', 'device_owner', 'fixed_ips'];

export class Networking {
  constructor(
    private readonly session: Session,
    /** Id of the project. Administrators also see resources of other projects, which are filtered out. */
    private readonly projectId: () => Promise<string | undefined>,
  ) {}

  /** Lists all networks that the project can see, including external ones of other projects. */
  async listNetworks(call: Call): Promise<readonly Network[]> {
    const networks = await allPages(this.session, list('networks', '/networks'), 'networks', call);
    return networks.map((network) => ({
      id: requiredText(network, 'id', 'network: GET networks'),
      name: stringAt(network, 'name') ?? '',
      external: booleanAt(network, 'router:external') ?? false,
      isDefault: booleanAt(network, 'is_default') ?? false,
      projectId: stringAt(network, 'project_id') ?? stringAt(network, 'tenant_id'),
    }));
  }

  async listPorts(call: Call): Promise<readonly Port[]> {
    const query = await this.ownProject(PORT_FIELDS.map((field) => `fields=${field}`));
    const ports = await allPages(this.session, list('ports', `/ports${query}`), 'ports', call);
    return ports.map((port) => ({
      id: requiredText(port, 'id', 'network: GET ports'),
      name: stringAt(port, 'name') ?? '',
      networkId: stringAt(port, 'network_id') ?? '',
      status: stringAt(port, 'status') ?? '',
      deviceId: stringAt(port, 'device_id') ?? '',
      deviceOwner: stringAt(port, 'device_owner') ?? '',
      fixedIps: entriesAt(port, 'fixed_ips').flatMap(({ section }) => stringAt(section, 'ip_address') ?? []),
    }));
  }

  async deletePort(id: string, call: Call): Promise<void> {
    await this.session.delete('network', 'port', `/ports/${encodeURIComponent(id)}`, call);
  }

  /** Lists all floating addresses of the project. A network service without routers has none. */
  async listFloatingIps(call: Call): Promise<readonly FloatingIp[]> {
    const path = `/floatingips${await this.ownProject([])}`;
    try {
      const addresses = await allPages(this.session, list('floatingips', path), 'floatingips', call);
      return addresses.map((address) => readFloatingIp(address));
    } catch (error) {
      if (error instanceof MissingListError) return [];
      throw error;
    }
  }

  /** Creates a floating address and attaches it to its port in the same call. */
  async createFloatingIp({ networkId, portId, fixedIp, description }: FloatingIpSpec, call: Call): Promise<FloatingIp> {
    const request: ServiceRequest = {
      service: 'network',
      method: 'POST',
      operation: 'floatingips',
      path: '/floatingips',
      json: {
        floatingip: { floating_network_id: networkId, port_id: portId, fixed_ip_address: fixedIp, description },
      },
    };
    return readFloatingIp(
      memberOf(await this.session.requestJson(request, call), 'floatingip', 'network: POST floatingips'),
    );
  }

  async deleteFloatingIp(id: string, call: Call): Promise<void> {
    await this.session.delete('network', 'floatingip', `/floatingips/${encodeURIComponent(id)}`, call);
  }

  private async ownProject(filters: readonly string[]): Promise<string> {
    const projectId = await this.projectId();
    const all = projectId === undefined ? filters : [`project_id=${encodeURIComponent(projectId)}`, ...filters];
    return all.length === 0 ? '' : `?${all.join('&')}`;
  }
}

function readFloatingIp(address: JsonObject): FloatingIp {
  return {
    id: requiredText(address, 'id', 'network: floatingips'),
    address: requiredText(address, 'floating_ip_address', 'network: floatingips'),
    status: stringAt(address, 'status') ?? '',
    portId: stringAt(address, 'port_id'),
    deviceId: stringAt(objectAt(address, 'port_details') ?? {}, 'device_id'),
    description: stringAt(address, 'description') ?? '',
  };
}

function list(operation: string, path: string): ServiceRequest {
  return { service: 'network', method: 'GET', operation, path, timeoutMs: LIST_TIMEOUT_MS };
}
