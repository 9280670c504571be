/** Networks: regions, zones, subnets and security groups. */

import type {
  CreateSecurityGroupRequest,
  CreateSecurityGroupResult,
  DeleteSecurityGroupRequest,
  DescribeAvailabilityZonesRequest,
  DescribeAvailabilityZonesResult,
  DescribeRegionsRequest,
  DescribeRegionsResult,
  DescribeSecurityGroupsRequest,
  DescribeSecurityGroupsResult,
  DescribeSubnetsRequest,
  DescribeSubnetsResult,
  DescribeVpcsRequest,
  DescribeVpcsResult,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidValue } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT, REGIONS } from '../settings.js';
import { filtered, filteredBy, pageOf, refusePaging, type Filterable } from './lists.js';
import type { SecurityGroup, Subnet, Vpc } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

const VPC_FILTERS: Filterable<Vpc> = {
  ...{ 'vpc-id': ({ id }) => id, cidr: ({ cidr }) => cidr, 'is-default': () => 'true', isDefault: () => 'true' },
};

const SUBNET_FILTERS: Filterable<Subnet> = {
  'subnet-id': ({ id }) => id,
  'vpc-id': ({ vpcId }) => vpcId,
  'availability-zone': ({ zone }) => zone,
  'cidr-block': ({ cidr }) => cidr,
  'default-for-az': () => 'true',
  state: () => 'available',
};

const GROUP_FILTERS: Filterable<SecurityGroup> = {
  ...{ 'group-id': ({ id }) => id, 'group-name': ({ name }) => name, 'vpc-id': ({ vpcId }) => vpcId },
  description: ({ description }) => description,
};

export function networkHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    DescribeRegions: operation<DescribeRegionsRequest, DescribeRegionsResult>((input) => {
      const names = [...REGIONS.keys()].filter((name) => input.RegionNames?.includes(name) ?? true);
      const unknown = input.RegionNames?.find((name) => !REGIONS.has(name));
      if (unknown !== undefined) throw invalidValue(`Invalid region names provided: [${unknown}]`);
      const found = filteredBy(names, input.Filters, { 'region-name': (name) => name });
      const Regions = found.map((RegionName) => ({
        ...{ RegionName, Endpoint: `ec2.${RegionName}.amazonaws.com`, OptInStatus: 'opt-in-not-required' },
      }));
      return { Regions };
    }),
    DescribeAvailabilityZones: operation<DescribeAvailabilityZonesRequest, DescribeAvailabilityZonesResult>(
      (input, call) => {
        const region = regionOf(call);
        const names = region.zones.filter((zone) => input.ZoneNames?.includes(zone) ?? true);
        const unknown = input.ZoneNames?.find((zone) => !region.zones.includes(zone));
        if (unknown !== undefined) throw invalidValue(`Invalid availability zone: [${unknown}]`);
        const found = filteredBy(names, input.Filters, {
          ...{ 'zone-name': (zone) => zone, 'zone-id': zoneId, 'region-name': () => region.name },
          ...{ state: () => 'available', 'zone-type': () => 'availability-zone' },
          'opt-in-status': () => 'opt-in-not-required',
        });
        const AvailabilityZones = found.map((ZoneName) => ({
          ...{ ZoneName, ZoneId: zoneId(ZoneName), RegionName: region.name, ZoneType: 'availability-zone' },
          ...{ State: 'available' as const, OptInStatus: 'opt-in-not-required' as const, GroupName: region.name },
          ...{ NetworkBorderGroup: region.name, Messages: [] },
        }));
        return { AvailabilityZones };
      },
    ),
    DescribeVpcs: operation<DescribeVpcsRequest, DescribeVpcsResult>((input, call) => {
      const region = regionOf(call);
      const { VpcIds: ids } = input;
      const seen = ids === undefined ? region.vpcs.seen(call.asOf) : region.vpcs.require(ids, call.asOf);
      const { items, NextToken } = pageOf(filtered(seen, input.Filters, VPC_FILTERS), input, region.settings.pageSize);
      const Vpcs = items.map(({ id, cidr, tags }) => ({
        ...{ VpcId: id, CidrBlock: cidr, State: 'available' as const, OwnerId: ACCOUNT, Tags: shownTags(tags) },
        ...{ IsDefault: true, InstanceTenancy: 'default' as const },
      }));
      return { Vpcs, NextToken };
    }),
    DescribeSubnets: operation<DescribeSubnetsRequest, DescribeSubnetsResult>((input, call) => {
      const region = regionOf(call);
      refusePaging(input.SubnetIds, input, 'subnetIds');
      const { SubnetIds: ids } = input;
      const seen = ids === undefined ? region.subnets.seen(call.asOf) : region.subnets.require(ids, call.asOf);
      const found = filtered(seen, input.Filters, SUBNET_FILTERS);
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Subnets: items.map((subnet) => shownSubnet(region, subnet)), NextToken };
    }),
    DescribeSecurityGroups: operation<DescribeSecurityGroupsRequest, DescribeSecurityGroupsResult>((input, call) => {
      const region = regionOf(call);
      refusePaging(input.GroupIds, input, 'securityGroupIds');
      const { GroupIds: ids, GroupNames: names } = input;
      const seen = ids === undefined ? region.groups.seen(call.asOf) : region.groups.require(ids, call.asOf);
      const named = seen.filter(({ name }) => names?.includes(name) ?? true);
      const absent = names?.find((name) => !named.some((group) => group.name === name));
      if (absent !== undefined) {
        throw new AwsError('InvalidGroup.NotFound', `The security group '${absent}' does not exist`);
      }
      const { items, NextToken } = pageOf(
        filtered(named, input.Filters, GROUP_FILTERS),
        input,
        region.settings.pageSize,
      );
      const SecurityGroups = items.map(({ id, name, description, vpcId, tags }) => ({
        ...{ GroupId: id, GroupName: name, Description: description, VpcId: vpcId, OwnerId: ACCOUNT },
        ...{ Tags: shownTags(tags), IpPermissions: [], IpPermissionsEgress: [] },
      }));
      return { SecurityGroups, NextToken };
    }),
    CreateSecurityGroup: operation<CreateSecurityGroupRequest, CreateSecurityGroupResult>((input, call) =>
      createGroup(regionOf(call), input, call),
    ),
    DeleteSecurityGroup: operation<DeleteSecurityGroupRequest, object>((input, call) => {
      const region = regionOf(call);
      const group = region.groups.one(input.GroupId ?? '', call.asOf);
      if (group.name === 'default')
        throw new AwsError('CannotDelete', `the specified group: "${group.id}" name: "default" cannot be deleted`);
      if (region.interfaces.all().some(({ groupIds }) => groupIds.includes(group.id))) {
        throw new AwsError('DependencyViolation', `resource ${group.id} has a dependent object`);
      }
      region.groups.remove(group, call.now);
      return {};
    }),
  };
}

/** Returns the id of a zone, e.g. `use1-az1`. */
export function zoneId(zone: string): string {
  const [area = '', direction = '', number = ''] = zone.split('-');
  const index = (zone.codePointAt(zone.length - 1) ?? 0) - 96;
  return `${area}${direction.slice(0, 1)}${number.slice(0, 1)}-az${index}`;
}

function shownSubnet(region: Region, subnet: Subnet): NonNullable<DescribeSubnetsResult['Subnets']>[number] {
  return {
    ...{
      SubnetId: subnet.id,
      VpcId: subnet.vpcId,
      AvailabilityZone: subnet.zone,
      AvailabilityZoneId: zoneId(subnet.zone),
    },
    ...{ CidrBlock: subnet.cidr, State: 'available', OwnerId: ACCOUNT, DefaultForAz: true },
    AvailableIpAddressCount: Math.max(0, subnet.capacity - subnet.used.size),
    MapPublicIpOnLaunch: subnet.mapsPublicIp,
    AssignIpv6AddressOnCreation: false,
    Ipv6CidrBlockAssociationSet: [
      {
        ...{
          AssociationId: subnet.id.replace('subnet', 'subnet-cidr-assoc'),
          Ipv6CidrBlock: `${subnet.ipv6Prefix}::/64`,
        },
        Ipv6CidrBlockState: { State: 'associated' },
      },
    ],
    Tags: shownTags(subnet.tags),
    SubnetArn: region.arn('ec2', `subnet/${subnet.id}`, ACCOUNT),
  };
}

function createGroup(
  region: Region,
  { GroupName: name = '', Description: description = '', VpcId, TagSpecifications }: CreateSecurityGroupRequest,
  call: AwsCall,
): CreateSecurityGroupResult {
  const tags = tagsByType(TagSpecifications, ['security-group']).get('security-group');
  if (tags !== undefined) call.authorize('ec2:CreateTags');
  const vpcId = VpcId ?? region.vpcs.all()[0]?.id ?? '';
  region.vpcs.one(vpcId, call.asOf);
  if (!/^[\w .:/()#,@[\]+=&;{}!$*-]{1,255}$/.test(name) || name.startsWith('sg-')) {
    throw invalidValue(`Invalid security group name '${name}'`);
  }
  if (name === 'default') throw new AwsError('InvalidGroup.Reserved', `The name 'default' is reserved`);
  if (region.groups.all().some((group) => group.name === name && group.vpcId === vpcId)) {
    throw new AwsError('InvalidGroup.Duplicate', `The security group '${name}' already exists for VPC '${vpcId}'`);
  }
  const group = region.groups.add({ ...region.newResource(KINDS.securityGroup, tags), name, description, vpcId });
  return { GroupId: group.id, Tags: shownTags(group.tags) };
}
