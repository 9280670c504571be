/** Instances as EC2 describes them. */

import type { Instance as ShownInstance, InstanceNetworkInterface, _InstanceType } from '@aws-sdk/client-ec2';
import type { InstanceState } from '../api.js';
import type { Region } from '../region.js';
import { ACCOUNT } from '../settings.js';
import { stateAt, type Instance, type NetworkInterface } from './records.js';
import { shownTags } from './tags.js';

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html. */
export const STATE_CODES: Readonly<Record<InstanceState, number>> = {
  ...{ pending: 0, running: 16, 'shutting-down': 32, terminated: 48, stopping: 64, stopped: 80 },
};

export function shownState(state: InstanceState): { readonly Code: number; readonly Name: InstanceState } {
  return { Code: STATE_CODES[state], Name: state };
}

/** Returns the public address that lists show; undefined before the instance has it. */
export function publicIpOf(region: Region, instance: Instance, asOf: number): string | undefined {
  const nic = region.interfaces.get(instance.interfaceIds[0]);
  return asOf >= instance.addressAt && stateAt(instance, asOf) === 'running' ? nic?.publicIp : undefined;
}

export function showInstance(region: Region, instance: Instance, asOf: number): ShownInstance {
  const state = stateAt(instance, asOf);
  const isGone = state === 'terminated';
  const publicIp = publicIpOf(region, instance, asOf);
  const nics = instance.interfaceIds.map((id) => region.interfaces.get(id)).filter((nic) => nic !== undefined);
  const launchedAt = instance.history.findLast(({ state: name }) => name === 'pending')?.at ?? instance.createdAt;
  return {
    InstanceId: instance.id,
    ImageId: instance.imageId,
    State: shownState(state),
    // The table of types is a part of Amazon's.
    InstanceType: instance.type.name as _InstanceType,
    AmiLaunchIndex: instance.launchIndex,
    ClientToken: instance.clientToken,
    LaunchTime: new Date(Math.floor(launchedAt / 1000) * 1000),
    KeyName: instance.keyName,
    Placement: {
      ...{ AvailabilityZone: instance.zone, GroupName: '', HostId: instance.hostId },
      Tenancy: instance.tenancy as 'default' | 'dedicated' | 'host',
    },
    ...(instance.market === 'spot' ? { InstanceLifecycle: 'spot', SpotInstanceRequestId: instance.spotRequestId } : {}),
    StateTransitionReason: instance.transition,
    ...(instance.stateReason === undefined
      ? {}
      : { StateReason: { Code: instance.stateReason.code, Message: instance.stateReason.message } }),
    Architecture: instance.architecture as 'x86_64' | 'arm64',
    ...(instance.platform === undefined ? {} : { Platform: 'Windows' }),
    PlatformDetails: instance.platform === undefined ? 'Linux/UNIX' : 'Windows',
    ...{ Hypervisor: 'xen', VirtualizationType: 'hvm', RootDeviceType: 'ebs', RootDeviceName: instance.rootDeviceName },
    EbsOptimized: instance.ebsOptimized,
    EnaSupport: true,
    Monitoring: { State: instance.monitored ? 'enabled' : 'disabled' },
    MetadataOptions: instance.metadata,
    CpuOptions: instance.cpuOptions,
    ...(instance.profileArn === undefined
      ? {}
      : { IamInstanceProfile: { Arn: instance.profileArn, Id: 'AIPAJ7EXAMPLEPROFILE0' } }),
    Tags: shownTags(instance.tags),
    PrivateDnsName: '',
    PublicDnsName: '',
    ProductCodes: [],
    // EC2 drops the network and the volumes of a terminated instance.
    ...(isGone
      ? { BlockDeviceMappings: [], NetworkInterfaces: [], SecurityGroups: [] }
      : partsOf(region, instance, nics, publicIp)),
  };
}

function partsOf(
  region: Region,
  instance: Instance,
  nics: readonly NetworkInterface[],
  publicIp: string | undefined,
): Partial<ShownInstance> {
  const [primary] = nics;
  const dns = primary === undefined ? '' : `ip-${primary.privateIp.replaceAll('.', '-')}.ec2.internal`;
  const volumes = instance.volumeIds
    .map((id) => region.volumes.get(id))
    .filter((volume) => volume !== undefined)
    .filter(({ attachment }) => attachment?.instanceId === instance.id);
  return {
    ...{ SubnetId: instance.subnetId, VpcId: instance.vpcId, SourceDestCheck: true },
    ...(primary === undefined ? {} : { PrivateIpAddress: primary.privateIp, PrivateDnsName: dns }),
    ...(publicIp === undefined
      ? {}
      : { PublicIpAddress: publicIp, PublicDnsName: `ec2-${publicIp.replaceAll('.', '-')}.compute-1.amazonaws.com` }),
    ...(primary?.ipv6[0] === undefined ? {} : { Ipv6Address: primary.ipv6[0] }),
    SecurityGroups: instance.groupIds.map((GroupId) => ({ GroupId, GroupName: region.groups.get(GroupId)?.name })),
    BlockDeviceMappings: volumes.map(({ id, attachment }) => ({
      DeviceName: attachment?.device,
      Ebs: {
        ...{ VolumeId: id, Status: 'attached', DeleteOnTermination: attachment?.deleteOnTermination },
        AttachTime: new Date(attachment?.at ?? 0),
      },
    })),
    NetworkInterfaces: nics.map((nic) => shownInterface(region, instance, nic, publicIp)),
  };
}

function shownInterface(
  region: Region,
  instance: Instance,
  nic: NetworkInterface,
  publicIp: string | undefined,
): InstanceNetworkInterface {
  const association =
    publicIp === undefined ? {} : { Association: { IpOwnerId: 'amazon', PublicDnsName: '', PublicIp: publicIp } };
  return {
    ...{ NetworkInterfaceId: nic.id, SubnetId: nic.subnetId, VpcId: instance.vpcId, OwnerId: ACCOUNT },
    ...{ Description: nic.description, Status: 'in-use', SourceDestCheck: true, InterfaceType: 'interface' },
    PrivateIpAddress: nic.privateIp,
    ...association,
    Ipv6Addresses: nic.ipv6.map((Ipv6Address) => ({ Ipv6Address })),
    Groups: nic.groupIds.map((GroupId) => ({ GroupId, GroupName: region.groups.get(GroupId)?.name })),
    PrivateIpAddresses: [{ Primary: true, PrivateIpAddress: nic.privateIp, ...association }],
    Attachment: {
      ...{ AttachmentId: nic.id.replace('eni', 'eni-attach'), DeviceIndex: nic.attachment?.index, Status: 'attached' },
      ...{ DeleteOnTermination: nic.attachment?.deleteOnTermination, AttachTime: new Date(nic.attachment?.at ?? 0) },
    },
  };
}
