/** Resources in neutron's format. */

import { isoSeconds } from '../text.js';
import type { NetworkStore } from './networks.js';
import type {
  FloatingIpRecord,
  NetworkRecord,
  PortRecord,
  RouterRecord,
  SecurityGroupRecord,
  Standard,
  SubnetRecord,
} from './records.js';

export type View = Readonly<Record<string, unknown>>;

function standard({ id, name, project, description, tags, createdAt, updatedAt, revision }: Standard): View {
  return {
    id,
    name,
    tenant_id: project,
    project_id: project,
    description,
    tags,
    created_at: isoSeconds(createdAt),
    updated_at: isoSeconds(updatedAt),
    revision_number: revision,
  };
}

export class Views {
  constructor(private readonly store: NetworkStore) {}

  readonly network = (network: NetworkRecord): View => ({
    ...standard(network),
    admin_state_up: true,
    mtu: network.external ? 1500 : 1450,
    status: 'ACTIVE',
    subnets: this.store.subnetsOf(network.id).map(({ id }) => id),
    shared: network.shared,
    availability_zone_hints: [],
    availability_zones: [],
    ipv4_address_scope: null,
    ipv6_address_scope: null,
    'router:external': network.external,
    port_security_enabled: true,
    ...(network.external ? { is_default: false } : {}),
  });

  readonly subnet = (subnet: SubnetRecord): View => ({
    ...standard(subnet),
    network_id: subnet.networkId,
    ip_version: subnet.version,
    subnetpool_id: null,
    enable_dhcp: true,
    ipv6_ra_mode: null,
    ipv6_address_mode: null,
    gateway_ip: subnet.pool.gateway,
    cidr: subnet.cidr,
    allocation_pools: [subnet.pool.range],
    host_routes: [],
    dns_nameservers: [],
    service_types: [],
  });

  readonly port = (port: PortRecord): View => ({
    ...standard(port),
    network_id: port.networkId,
    mac_address: port.mac,
    admin_state_up: true,
    status: port.status,
    device_id: port.deviceId,
    device_owner: port.deviceOwner,
    fixed_ips: port.fixedIps,
    allowed_address_pairs: [],
    extra_dhcp_opts: [],
    security_groups: port.securityGroups,
    'binding:vnic_type': 'normal',
    port_security_enabled: true,
  });

  readonly floatingIp = (floating: FloatingIpRecord): View => {
    const port = floating.portId === null ? undefined : this.store.ports.get(floating.portId);
    const { name: _, ...common } = standard(floating);
    return {
      ...common,
      floating_ip_address: floating.address,
      floating_network_id: floating.networkId,
      router_id: floating.routerId,
      port_id: floating.portId,
      fixed_ip_address: floating.fixedIp,
      status: floating.portId === null ? 'DOWN' : 'ACTIVE',
      port_details: port === undefined ? null : portDetails(port),
    };
  };

  readonly router = (router: RouterRecord): View => ({
    ...standard(router),
    admin_state_up: true,
    status: 'ACTIVE',
    external_gateway_info: {
      network_id: router.externalNetworkId,
      external_fixed_ips: router.externalIps,
      enable_snat: true,
    },
    availability_zones: [],
    availability_zone_hints: [],
    routes: [],
    flavor_id: null,
  });

  readonly securityGroup = (group: SecurityGroupRecord): View => ({
    ...standard(group),
    stateful: true,
    shared: false,
    security_group_rules: [],
  });
}

function portDetails(port: PortRecord): View {
  return {
    name: port.name,
    network_id: port.networkId,
    mac_address: port.mac,
    admin_state_up: true,
    status: port.status,
    device_id: port.deviceId,
    device_owner: port.deviceOwner,
  };
}
