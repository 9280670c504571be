/** Operations on network interfaces and public addresses. */

import type {
  Address as ShownAddress,
  AllocateAddressRequest,
  AllocateAddressResult,
  AssociateAddressRequest,
  AssociateAddressResult,
  CreateNetworkInterfaceRequest,
  CreateNetworkInterfaceResult,
  DeleteNetworkInterfaceRequest,
  DescribeAddressesRequest,
  DescribeAddressesResult,
  DescribeNetworkInterfacesRequest,
  DescribeNetworkInterfacesResult,
  DisassociateAddressRequest,
  NetworkInterface as ShownInterface,
  ReleaseAddressRequest,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import { ADDRESS_QUOTA } from '../quotas.js';
import type { Region } from '../region.js';
import { ACCOUNT } from '../settings.js';
import { newInterface, removeInterface, takeAddresses } from './interfaces.js';
import { groupsOf } from './launch-network.js';
import { filtered, pageOf, refusePaging, type Filterable } from './lists.js';
import type { Address, NetworkInterface } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

const INTERFACE_FILTERS: Filterable<NetworkInterface> = {
  'network-interface-id': ({ id }) => id,
  status: (nic) => interfaceStatus(nic),
  'subnet-id': ({ subnetId }) => subnetId,
  'group-id': ({ groupIds }) => groupIds,
  description: ({ description }) => description,
  'attachment.instance-id': ({ attachment }) => attachment?.instanceId,
  'addresses.private-ip-address': ({ privateIp }) => privateIp,
  'private-ip-address': ({ privateIp }) => privateIp,
};

const ADDRESS_FILTERS = (region: Region): Filterable<Address> => ({
  'allocation-id': ({ id }) => id,
  'association-id': ({ associationId }) => associationId,
  'public-ip': ({ publicIp }) => publicIp,
  domain: () => 'vpc',
  'network-interface-id': ({ interfaceId }) => interfaceId,
  'instance-id': ({ interfaceId }) => region.interfaces.get(interfaceId)?.attachment?.instanceId,
});

export function interfaceHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    DescribeNetworkInterfaces: operation<DescribeNetworkInterfacesRequest, DescribeNetworkInterfacesResult>(
      (input, call) => {
        const region = regionOf(call);
        refusePaging(input.NetworkInterfaceIds, input, 'networkInterfaceIds');
        const { NetworkInterfaceIds: ids } = input;
        const seen = ids === undefined ? region.interfaces.seen(call.asOf) : region.interfaces.require(ids, call.asOf);
        const found = filtered(seen, input.Filters, INTERFACE_FILTERS);
        const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
        return { NetworkInterfaces: items.map((nic) => shownInterface(region, nic)), NextToken };
      },
    ),
    CreateNetworkInterface: operation<CreateNetworkInterfaceRequest, CreateNetworkInterfaceResult>((input, call) => {
      const region = regionOf(call);
      return region.idempotency.run(call.operation, input, () => {
        const tags = tagsByType(input.TagSpecifications, ['network-interface']).get('network-interface');
        if (tags !== undefined) call.authorize('ec2:CreateTags');
        const subnet = region.subnets.one(input.SubnetId ?? '', call.asOf);
        if (subnet.used.size >= subnet.capacity) {
          const message = `insufficient free addresses in subnet ${subnet.id}`;
          throw new AwsError('InsufficientFreeAddressesInSubnet', message);
        }
        const nic = newInterface(region, {
          ...takeAddresses(subnet, input.Ipv6AddressCount ?? 0),
          ...{ subnetId: subnet.id, description: input.Description ?? '', publicIp: undefined, tags },
          groupIds: groupsOf(region, input.Groups, undefined, subnet, call),
        });
        region.interfaces.add(nic);
        return () => ({ NetworkInterface: shownInterface(region, nic), ClientToken: input.ClientToken });
      });
    }),
    DeleteNetworkInterface: operation<DeleteNetworkInterfaceRequest, object>((input, call) => {
      const region = regionOf(call);
      const nic = region.interfaces.one(input.NetworkInterfaceId ?? '', call.asOf);
      if (nic.attachment !== undefined) {
        throw new AwsError('InvalidParameterValue', `Network interface '${nic.id}' is currently in use.`);
      }
      removeInterface(region, nic, call.now);
      return {};
    }),
  };
}

export function addressHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    AllocateAddress: operation<AllocateAddressRequest, AllocateAddressResult>((input, call) => {
      const region = regionOf(call);
      const tags = tagsByType(input.TagSpecifications, ['elastic-ip']).get('elastic-ip');
      if (tags !== undefined) call.authorize('ec2:CreateTags');
      if (region.addresses.all().length >= region.quotas.value(ADDRESS_QUOTA)) {
        throw new AwsError('AddressLimitExceeded', 'The maximum number of addresses has been reached.');
      }
      const address: Address = {
        ...region.newResource(KINDS.address, tags),
        ...{ publicIp: region.newPublicIp(), associationId: undefined, interfaceId: undefined },
      };
      region.addresses.add(address);
      return { AllocationId: address.id, PublicIp: address.publicIp, Domain: 'vpc', NetworkBorderGroup: region.name };
    }),
    DescribeAddresses: operation<DescribeAddressesRequest, DescribeAddressesResult>((input, call) => {
      const region = regionOf(call);
      const { AllocationIds: ids, PublicIps: ips } = input;
      const seen = ids === undefined ? region.addresses.seen(call.asOf) : region.addresses.require(ids, call.asOf);
      const absent = ips?.find((ip) => !seen.some(({ publicIp }) => publicIp === ip));
      if (absent !== undefined) throw new AwsError('InvalidAddress.NotFound', `Address '${absent}' not found.`);
      const named = seen.filter(({ publicIp }) => ips?.includes(publicIp) ?? true);
      const found = filtered(named, input.Filters, ADDRESS_FILTERS(region));
      return { Addresses: found.map((address) => shownAddress(region, address)) };
    }),
    AssociateAddress: operation<AssociateAddressRequest, AssociateAddressResult>((input, call) => {
      const region = regionOf(call);
      const address = region.addresses.one(input.AllocationId ?? '', call.asOf);
      if (address.associationId !== undefined && input.AllowReassociation === false) {
        throw new AwsError('Resource.AlreadyAssociated', `resource ${address.id} is already associated`);
      }
      const instance = input.InstanceId === undefined ? undefined : region.instances.one(input.InstanceId, call.asOf);
      const nic = region.interfaces.one(input.NetworkInterfaceId ?? instance?.interfaceIds[0] ?? '', call.asOf);
      address.associationId = region.newId('eipassoc');
      address.interfaceId = nic.id;
      nic.publicIp = address.publicIp;
      if (instance !== undefined) instance.addressAt = Math.min(instance.addressAt, call.now);
      return { AssociationId: address.associationId };
    }),
    DisassociateAddress: operation<DisassociateAddressRequest, object>((input, call) => {
      const region = regionOf(call);
      const found = region.addresses.seen(call.asOf).find(({ associationId }) => associationId === input.AssociationId);
      if (found === undefined) {
        throw new AwsError(
          'InvalidAssociationID.NotFound',
          `The association ID '${input.AssociationId}' does not exist`,
        );
      }
      const nic = region.interfaces.get(found.interfaceId);
      if (nic !== undefined) nic.publicIp = undefined;
      [found.associationId, found.interfaceId] = [undefined, undefined];
      return {};
    }),
    ReleaseAddress: operation<ReleaseAddressRequest, object>((input, call) => {
      const region = regionOf(call);
      const address = region.addresses.one(input.AllocationId ?? '', call.asOf);
      if (address.associationId !== undefined) {
        throw new AwsError('InvalidIPAddress.InUse', `Address ${address.publicIp} is in use.`);
      }
      region.addresses.remove(address, call.now);
      return {};
    }),
  };
}

function interfaceStatus({ attachment }: NetworkInterface): 'in-use' | 'available' {
  return attachment === undefined ? 'available' : 'in-use';
}

function shownInterface(region: Region, nic: NetworkInterface): ShownInterface {
  const subnet = region.subnets.get(nic.subnetId);
  const { attachment } = nic;
  const association =
    nic.publicIp === undefined ? {} : { Association: { PublicIp: nic.publicIp, IpOwnerId: 'amazon' } };
  return {
    ...{ NetworkInterfaceId: nic.id, SubnetId: nic.subnetId, VpcId: subnet?.vpcId, AvailabilityZone: subnet?.zone },
    ...{ Description: nic.description, InterfaceType: 'interface', OwnerId: ACCOUNT, Status: interfaceStatus(nic) },
    ...{ PrivateIpAddress: nic.privateIp, TagSet: shownTags(nic.tags) ?? [], RequesterManaged: false },
    ...association,
    PrivateIpAddresses: [{ Primary: true, PrivateIpAddress: nic.privateIp, ...association }],
    Ipv6Addresses: nic.ipv6.map((Ipv6Address) => ({ Ipv6Address })),
    Groups: nic.groupIds.map((GroupId) => ({ GroupId, GroupName: region.groups.get(GroupId)?.name })),
    ...(attachment === undefined
      ? {}
      : {
          Attachment: {
            ...{
              AttachmentId: nic.id.replace('eni', 'eni-attach'),
              InstanceId: attachment.instanceId,
              Status: 'attached',
            },
            ...{ InstanceOwnerId: ACCOUNT, DeviceIndex: attachment.index, AttachTime: new Date(attachment.at) },
            DeleteOnTermination: attachment.deleteOnTermination,
          },
        }),
  };
}

function shownAddress(region: Region, address: Address): ShownAddress {
  const nic = region.interfaces.get(address.interfaceId);
  return {
    ...{ AllocationId: address.id, PublicIp: address.publicIp, Domain: 'vpc', Tags: shownTags(address.tags) },
    ...{ AssociationId: address.associationId, NetworkInterfaceId: nic?.id, PrivateIpAddress: nic?.privateIp },
    InstanceId: nic?.attachment?.instanceId,
  };
}
