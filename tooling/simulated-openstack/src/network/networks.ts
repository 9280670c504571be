/** Networks, ports, floating IPs and related resources. */

import type { OpenStackState } from '../cloud-state.js';
import type { Caller } from '../http/request-context.js';
import { newUuid } from '../text.js';
import { Table } from '../table.js';
import { AddressPool } from './addresses.js';
import type {
  FixedIp,
  FloatingIpRecord,
  NetworkRecord,
  PortRecord,
  RouterRecord,
  SecurityGroupRecord,
  Standard,
  SubnetRecord,
} from './records.js';

/** A port to create. */
export interface NewPort {
  readonly project: string;
  readonly networkId: string;
  readonly name?: string;
  readonly description?: string;
  readonly deviceId?: string;
  readonly deviceOwner?: string;
  /** Ids. Default: the project's group `default`. */
  readonly securityGroups?: readonly string[];
  readonly madeByNova?: boolean;
}

/** Reason why a floating IP cannot be associated. */
export type AssociationProblem =
  | { readonly problem: 'no-port' }
  | { readonly problem: 'unreachable'; readonly subnetId: string }
  | { readonly problem: 'taken'; readonly fixedIp: string; readonly portId: string };

export class NetworkStore {
  readonly networks = new Table<NetworkRecord>();
  readonly subnets = new Table<SubnetRecord>();
  readonly ports = new Table<PortRecord>();
  readonly floatingIps = new Table<FloatingIpRecord>();
  readonly routers = new Table<RouterRecord>();
  readonly securityGroups = new Table<SecurityGroupRecord>();
  private macs = 0;

  constructor(private readonly state: OpenStackState) {}

  addNetwork(
    project: string,
    name: string,
    options: { readonly external?: boolean; readonly shared?: boolean } = {},
  ): NetworkRecord {
    const { external = false, shared = false } = options;
    const network = { ...this.standard(project, name), external, shared };
    this.networks.add(network);
    return network;
  }

  addSubnet(network: NetworkRecord, name: string, cidr: string, version: 4 | 6): SubnetRecord {
    const pool = new AddressPool(cidr, version);
    const subnet = { ...this.standard(network.project, name), networkId: network.id, version, cidr, pool };
    this.subnets.add(subnet);
    return subnet;
  }

  addRouter(project: string, name: string, external: NetworkRecord): RouterRecord {
    const externalIps = this.addressesIn(external.id);
    const router = {
      ...this.standard(project, name),
      externalNetworkId: external.id,
      externalIps,
      subnets: new Set<string>(),
    };
    this.routers.add(router);
    return router;
  }

  /** Adds a router interface, which is a port, to a subnet. */
  addInterface(router: RouterRecord, subnet: SubnetRecord): PortRecord {
    router.subnets.add(subnet.id);
    const port: PortRecord = {
      ...this.standard(router.project, ''),
      networkId: subnet.networkId,
      mac: this.nextMac(),
      securityGroups: [],
      status: 'DOWN',
      madeByNova: false,
      deviceId: router.id,
      deviceOwner: 'network:router_interface',
      fixedIps: [{ subnet_id: subnet.id, ip_address: subnet.pool.gateway }],
    };
    this.ports.add(port);
    return port;
  }

  addSecurityGroup(project: string, name: string, description: string): SecurityGroupRecord {
    const group = { ...this.standard(project, name), description };
    this.securityGroups.add(group);
    return group;
  }

  addPort(spec: NewPort): PortRecord {
    const { project, networkId, name = '', description = '', deviceId = '', deviceOwner = '' } = spec;
    const port: PortRecord = {
      ...this.standard(project, name),
      description,
      networkId,
      mac: this.nextMac(),
      fixedIps: this.addressesIn(networkId),
      status: 'DOWN',
      deviceId,
      deviceOwner,
      madeByNova: spec.madeByNova ?? false,
      securityGroups: spec.securityGroups ?? this.defaultGroups(project),
    };
    this.ports.add(port);
    return port;
  }

  addFloatingIp(project: string, external: NetworkRecord, description: string): FloatingIpRecord {
    const [address] = this.addressesIn(external.id);
    if (address === undefined) throw new Error(`the external network ${external.name} has no subnet`);
    const floating: FloatingIpRecord = {
      ...this.standard(project, ''),
      description,
      networkId: external.id,
      address: address.ip_address,
      portId: null,
      fixedIp: null,
      routerId: null,
    };
    this.floatingIps.add(floating);
    return floating;
  }

  /** Associates a floating IP. Returns the reason if that is not possible. */
  associate(floating: FloatingIpRecord, portId: string, caller: Caller): AssociationProblem | undefined {
    const port = this.ports.get(portId);
    const fixed = port?.fixedIps.find(({ subnet_id }) => this.subnets.get(subnet_id)?.version === 4);
    if (port === undefined || fixed === undefined || !isOf(port, caller)) return { problem: 'no-port' };
    const router = [...this.routers.all()].find(
      (candidate) => candidate.externalNetworkId === floating.networkId && candidate.subnets.has(fixed.subnet_id),
    );
    if (router === undefined) return { problem: 'unreachable', subnetId: fixed.subnet_id };
    for (const other of this.floatingIps.all()) {
      if (other.portId === portId && other !== floating) return { problem: 'taken', fixedIp: fixed.ip_address, portId };
    }
    Object.assign(floating, { portId, fixedIp: fixed.ip_address, routerId: router.id });
    this.touch(floating);
    return undefined;
  }

  disassociate(floating: FloatingIpRecord): void {
    Object.assign(floating, { portId: null, fixedIp: null, routerId: null });
    this.touch(floating);
  }

  removePort(port: PortRecord): void {
    for (const floating of this.floatingIps.all()) if (floating.portId === port.id) this.disassociate(floating);
    this.giveBack(port.fixedIps);
    this.ports.remove(port.id, this.state.clock.now());
  }

  removeFloatingIp(floating: FloatingIpRecord): void {
    for (const subnet of this.subnetsOf(floating.networkId)) subnet.pool.giveBack(floating.address);
    this.floatingIps.remove(floating.id, this.state.clock.now());
  }

  /** Returns the ports of a server in the order of their creation. */
  portsOf(deviceId: string): PortRecord[] {
    return [...this.ports.all()].filter((port) => port.deviceId === deviceId);
  }

  subnetsOf(networkId: string): SubnetRecord[] {
    return [...this.subnets.all()].filter((subnet) => subnet.networkId === networkId);
  }

  touch(record: Standard): void {
    record.updatedAt = this.state.clock.now();
    record.revision += 1;
  }

  private standard(project: string, name: string): Standard {
    const now = this.state.clock.now();
    const id = newUuid(this.state.random);
    return { id, project, name, description: '', tags: [], createdAt: now, updatedAt: now, revision: 1 };
  }

  /** Allocates one address in each subnet of the network. */
  private addressesIn(networkId: string): FixedIp[] {
    return this.subnetsOf(networkId).map(({ id, pool }) => ({ subnet_id: id, ip_address: pool.take() }));
  }

  private giveBack(addresses: readonly FixedIp[]): void {
    for (const { subnet_id, ip_address } of addresses) this.subnets.get(subnet_id)?.pool.giveBack(ip_address);
  }

  private defaultGroups(project: string): string[] {
    return [...this.securityGroups.all()]
      .filter((group) => group.project === project && group.name === 'default')
      .map(({ id }) => id);
  }

  private nextMac(): string {
    this.macs += 1;
    const digits = this.macs.toString(16).padStart(6, '0');
    return `fa:16:3e:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4)}`;
  }
}

/** Returns true if a caller may see and change the record. */
export function isOf(record: { readonly project: string }, caller: Caller): boolean {
  return caller.admin || record.project === caller.projectId;
}
