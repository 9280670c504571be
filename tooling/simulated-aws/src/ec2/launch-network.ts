/** The network part of launches: zone, subnet, groups and interfaces. */

import type { InstanceNetworkInterfaceSpecification, RunInstancesRequest } from '@aws-sdk/client-ec2';
import type { Market } from '../api.js';
import type { AwsCall } from '../call.js';
import { AwsError, invalidCombination, invalidValue } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import type { InstanceType } from './instance-types.js';
import type { NetworkInterface, Subnet } from './records.js';

export interface NetworkPlan {
  readonly zone: string;
  readonly subnet: Subnet;
  readonly groupIds: readonly string[];
  readonly publicIp: boolean;
  readonly ipv6Count: number;
  readonly deleteOnTermination: boolean;
  readonly description: string;
  /** An interface that exists already. */
  readonly existing: NetworkInterface | undefined;
}

/** Maximum number of security groups of an interface. */
const MAX_GROUPS = 5;
/** Maximum number of IPv6 addresses of an interface of the types in the table. */
const MAX_IPV6 = 15;

export function checkNetwork(
  region: Region,
  input: RunInstancesRequest,
  type: InstanceType,
  market: Market,
  call: AwsCall,
): NetworkPlan {
  const interfaces = input.NetworkInterfaces ?? [];
  if (interfaces.length > 0) refuseInstanceLevel(input);
  const primary = primaryOf(interfaces);
  const existing =
    primary?.NetworkInterfaceId === undefined ? undefined : unusedInterface(region, primary.NetworkInterfaceId, call);
  const subnet = subnetOf(region, input, primary?.SubnetId ?? input.SubnetId ?? existing?.subnetId, type, market, call);
  const groupIds = groupsOf(region, primary?.Groups ?? input.SecurityGroupIds, input.SecurityGroups, subnet, call);
  const ipv6Count = primary?.Ipv6AddressCount ?? input.Ipv6AddressCount ?? 0;
  if (ipv6Count < 0 || ipv6Count > MAX_IPV6) {
    throw invalidValue(`Value (${ipv6Count}) for parameter ipv6AddressCount is invalid.`);
  }
  return {
    ...{ zone: subnet.zone, subnet, ipv6Count, existing },
    groupIds: existing?.groupIds ?? groupIds,
    publicIp: existing === undefined && (primary?.AssociatePublicIpAddress ?? subnet.mapsPublicIp),
    deleteOnTermination: primary?.DeleteOnTermination ?? existing === undefined,
    description: primary?.Description ?? '',
  };
}

function refuseInstanceLevel(input: RunInstancesRequest): void {
  if (input.SubnetId !== undefined) {
    throw invalidCombination(
      'Network interfaces and an instance-level subnet ID may not be specified on the same request',
    );
  }
  if (input.SecurityGroupIds !== undefined || input.SecurityGroups !== undefined) {
    throw invalidCombination(
      'Network interfaces and an instance-level security groups may not be specified on the same request',
    );
  }
  if (input.Ipv6AddressCount !== undefined) {
    throw invalidCombination(
      'Network interfaces and an instance-level IPv6 address count may not be specified on the same request',
    );
  }
}

function primaryOf(
  interfaces: readonly InstanceNetworkInterfaceSpecification[],
): InstanceNetworkInterfaceSpecification | undefined {
  const [primary, second] = interfaces;
  if (primary === undefined) return undefined;
  if (second !== undefined) throw new AwsError('UnsupportedOperation', 'The simulation has one interface per instance');
  if (primary.DeviceIndex !== undefined && primary.DeviceIndex !== 0) {
    throw new AwsError(
      'InvalidNetworkInterface.InvalidDeviceIndex',
      'The first interface must have the device index 0',
    );
  }
  if (primary.DeviceIndex === undefined && primary.NetworkInterfaceId === undefined) {
    throw invalidValue('Each network interface requires a device index.');
  }
  const { Ipv6Addresses: given = [], NetworkInterfaceId: id } = primary;
  if (given.length > 0) throw new AwsError('UnsupportedOperation', 'The simulation selects IPv6 addresses itself');
  if (id !== undefined && (primary.SubnetId !== undefined || primary.Groups !== undefined)) {
    throw invalidCombination('A subnet or groups may not be specified for an existing network interface');
  }
  if (id !== undefined && primary.AssociatePublicIpAddress !== undefined) {
    throw invalidCombination('A public address may only be requested for a new network interface');
  }
  return primary;
}

function unusedInterface(region: Region, id: string, { asOf }: AwsCall): NetworkInterface {
  const found = region.interfaces.one(id, asOf);
  if (found.attachment === undefined) return found;
  throw new AwsError('InvalidNetworkInterface.InUse', `Interface: [${id}] in use.`);
}

function subnetOf(
  region: Region,
  { Placement: placement }: RunInstancesRequest,
  subnetId: string | undefined,
  type: InstanceType,
  market: Market,
  { asOf }: AwsCall,
): Subnet {
  const wanted = placement?.AvailabilityZone;
  if (wanted !== undefined && !region.zones.includes(wanted)) {
    throw invalidValue(`Value (${wanted}) for parameter availabilityZone is invalid.`);
  }
  if (subnetId !== undefined) {
    const subnet = region.subnets.one(subnetId, asOf);
    if (wanted !== undefined && wanted !== subnet.zone) {
      const message = `Value (${wanted}) for parameter availabilityZone is invalid. Subnet '${subnetId}' is in the \
availability zone ${subnet.zone}`;
      throw invalidValue(message);
    }
    requireOffer(region, type, subnet.zone);
    return subnet;
  }
  const subnets = region.subnets.seen(asOf).filter(({ zone }) => (wanted ?? zone) === zone);
  const offered = subnets.filter(({ zone }) => region.world.capacity.isOffered(type.name, zone));
  const { capacity } = region.world;
  const free = offered.find(({ zone }) => capacity.available(type.name, market, zone, region.instances.all()) > 0);
  const subnet = free ?? offered[0];
  if (subnet === undefined) throw unsupportedIn(type.name, wanted ?? region.name);
  return subnet;
}

function requireOffer(region: Region, type: InstanceType, zone: string): void {
  if (!region.world.capacity.isOffered(type.name, zone)) throw unsupportedIn(type.name, zone);
}

function unsupportedIn(type: string, zone: string): AwsError {
  const message = `Your requested instance type (${type}) is not supported in your requested Availability Zone \
(${zone}).`;
  return new AwsError('Unsupported', message);
}

/** Returns the checked ids of security groups; the network's default group if there are none. */
export function groupsOf(
  region: Region,
  ids: readonly string[] | undefined,
  names: readonly string[] | undefined,
  subnet: Subnet,
  { asOf }: AwsCall,
): readonly string[] {
  const groups = region.groups.seen(asOf).filter(({ vpcId }) => vpcId === subnet.vpcId);
  const byName = (names ?? []).map((name) => {
    const found = groups.find((group) => group.name === name);
    if (found === undefined) throw new AwsError('InvalidGroup.NotFound', `The security group '${name}' does not exist`);
    return found.id;
  });
  const all = [...new Set([...region.groups.require(ids ?? [], asOf).map(({ id }) => id), ...byName])];
  if (all.length > MAX_GROUPS) {
    throw new AwsError('SecurityGroupsPerInterfaceLimitExceeded', 'You have exceeded the number of security groups');
  }
  const foreign = all.find((id) => region.groups.get(id)?.vpcId !== subnet.vpcId);
  if (foreign !== undefined) {
    const message = `Security group ${foreign} and subnet ${subnet.id} belong to different networks.`;
    throw new AwsError('InvalidParameter', message);
  }
  const standard = groups.find(({ name }) => name === 'default');
  return all.length > 0 || standard === undefined ? all : [standard.id];
}
