/** Converts a label to the parameters of RunInstances, without counts, token and tags. */

import type {
  BlockDeviceMapping,
  EbsBlockDevice,
  Image,
  RunInstancesCommandInput,
  VolumeType,
} from '@aws-sdk/client-ec2';
import type { InstanceTags } from '@nodepool/core';
import { asInstanceType } from './client/ec2.js';
import type { AwsLabel } from './config.js';
import type { Choice } from './offers.js';

/** Where and how an instance is launched. */
export interface LaunchPlace {
  readonly choice: Choice;
  readonly image: Image;
  readonly zone: string | undefined;
  readonly subnetId: string | undefined;
  /** Dedicated host. */
  readonly hostId: string | undefined;
}

/** Parameters of a launch, which nodes can share if they are equal. */
export type LaunchSpec = Omit<RunInstancesCommandInput, 'MinCount' | 'MaxCount' | 'ClientToken' | 'TagSpecifications'>;

export function launchSpec(label: AwsLabel, place: LaunchPlace): LaunchSpec {
  const { choice, image, zone, hostId } = place;
  return {
    ImageId: image.ImageId,
    InstanceType: asInstanceType(choice.instanceType),
    KeyName: label.keyName,
    EbsOptimized: label.ebsOptimized,
    NetworkInterfaces: [interfaceOf(label, place.subnetId)],
    BlockDeviceMappings: blockDevices(label, image),
    ...(label.userData === undefined ? {} : { UserData: label.userData }),
    ...(label.instanceProfile === undefined ? {} : { IamInstanceProfile: label.instanceProfile }),
    ...metadataOf(label),
    ...placementOf(place.subnetId === undefined ? zone : undefined, hostId),
    ...(choice.market === 'spot' ? SPOT : {}),
  };
}

const SPOT: Pick<LaunchSpec, 'InstanceMarketOptions'> = {
  InstanceMarketOptions: {
    MarketType: 'spot',
    SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
  },
};

export function interfaceOf(
  { network }: AwsLabel,
  subnetId: string | undefined,
): NonNullable<LaunchSpec['NetworkInterfaces']>[number] {
  return {
    DeviceIndex: 0,
    AssociatePublicIpAddress: network.publicIpv4,
    DeleteOnTermination: true,
    ...(network.securityGroupIds.length === 0 ? {} : { Groups: [...network.securityGroupIds] }),
    ...(subnetId === undefined ? {} : { SubnetId: subnetId }),
    ...(network.ipv6 ? { Ipv6AddressCount: 1 } : {}),
  };
}

export function metadataOf({ imdsv2 }: AwsLabel): {
  readonly MetadataOptions?: { readonly HttpTokens: 'required' | 'optional'; readonly HttpEndpoint: 'enabled' };
} {
  return imdsv2 === undefined ? {} : { MetadataOptions: { HttpTokens: imdsv2, HttpEndpoint: 'enabled' } };
}

/** Returns the volumes of the image, which all are deleted with the instance. The root device is that of the image. */
export function blockDevices(
  { volume }: AwsLabel,
  { RootDeviceName, BlockDeviceMappings = [] }: Image,
): BlockDeviceMapping[] {
  const mappings = BlockDeviceMappings.filter(({ Ebs }) => Ebs !== undefined);
  const root = RootDeviceName ?? mappings[0]?.DeviceName;
  // EC2 demands a snapshot or a size.
  const sourceOf = (device: string | undefined): EbsBlockDevice => {
    const { SnapshotId, VolumeSize } = mappings.find(({ DeviceName }) => DeviceName === device)?.Ebs ?? {};
    return SnapshotId === undefined ? definedOf({ VolumeSize }) : { SnapshotId };
  };
  const others = mappings
    .filter(({ DeviceName }) => DeviceName !== root)
    .map(({ DeviceName }) => ({ DeviceName, Ebs: { DeleteOnTermination: true, ...sourceOf(DeviceName) } }));
  if (root === undefined) return others;
  const { size: VolumeSize, type, iops: Iops, throughput: Throughput, kmsKeyId: KmsKeyId } = volume;
  const changes = definedOf({ VolumeSize, VolumeType: type as VolumeType | undefined, Iops, Throughput });
  const encryption = KmsKeyId === undefined ? {} : { KmsKeyId, Encrypted: true };
  return [
    { DeviceName: root, Ebs: { DeleteOnTermination: true, ...sourceOf(root), ...changes, ...encryption } },
    ...others,
  ];
}

/** Returns the fields that have a value, so that equal launches are equal. */
function definedOf<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function placementOf(zone: string | undefined, hostId: string | undefined): Pick<LaunchSpec, 'Placement'> {
  if (hostId !== undefined) return { Placement: { Tenancy: 'host', HostId: hostId } };
  return zone === undefined ? {} : { Placement: { AvailabilityZone: zone } };
}

/** Returns the client token of a node's own call. EC2 recognizes a repetition by the token. */
export function tokenOf({ nodepool_launch_attempt: attempt }: InstanceTags): string {
  return attempt;
}
