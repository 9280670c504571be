/** Images. */

import type {
  CopyImageRequest,
  CopyImageResult,
  DeregisterImageRequest,
  DeregisterImageResult,
  DescribeImageAttributeRequest,
  DescribeImagesRequest,
  DescribeImagesResult,
  Image as ShownImage,
  ImageAttribute,
  ModifyImageAttributeRequest,
  RegisterImageRequest,
  RegisterImageResult,
  VolumeType,
} from '@aws-sdk/client-ec2';
import { faultOf, operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidCombination, refuseUnsupported } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT, AMAZON } from '../settings.js';
import { isVisible, requireImage, requireOwnImage } from './image-access.js';
import { checkVolumes, invalidMapping } from './launch-volumes.js';
import { filtered, pageOf, refusePaging, type Filterable } from './lists.js';
import type { Image, ImageVolume } from './records.js';
import { copySnapshot, deleteSnapshot } from './snapshots.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

const NAME = /^[A-Za-z0-9()[\] ./'@_-]{3,128}$/;

export type NewImage = Omit<Image, 'id' | 'order' | 'createdAt' | 'tags'>;

/** Fields that most images share. */
export const IMAGE_DEFAULTS = {
  ...{ description: '', ownerId: ACCOUNT, isPublic: false, architecture: 'x86_64', virtualization: 'hvm' },
  ...{ enaSupport: true, imdsSupport: undefined, bootMode: undefined, platform: undefined, copyOf: undefined },
} as const;

export function addImage(region: Region, fields: NewImage, tags?: ReadonlyMap<string, string>): Image {
  return region.images.add({ ...region.newResource(KINDS.image, tags), ...fields });
}

/** Lets a new image become available, or fail. */
function finish(region: Region, image: Image, call: AwsCall): void {
  const failure = faultOf(call, 'task-failure');
  image.availableAt = call.now + region.settings.resourceMs;
  region.world.timeline.at(image.availableAt, () => {
    image.state = failure === undefined ? 'available' : 'failed';
    image.stateMessage = failure?.message;
  });
}

const FILTERS: Filterable<Image> = {
  'image-id': ({ id }) => id,
  name: ({ name }) => name,
  description: ({ description }) => description,
  architecture: ({ architecture }) => architecture,
  state: ({ state }) => state,
  'owner-id': ({ ownerId }) => ownerId,
  'owner-alias': ({ ownerId }) => (ownerId === AMAZON ? 'amazon' : undefined),
  'is-public': ({ isPublic }) => String(isPublic),
  'root-device-name': ({ rootDeviceName }) => rootDeviceName,
  'root-device-type': () => 'ebs',
  'virtualization-type': ({ virtualization }) => virtualization,
  'image-type': () => 'machine',
  hypervisor: () => 'xen',
  'ena-support': ({ enaSupport }) => String(enaSupport),
  platform: ({ platform }) => platform,
  'creation-date': ({ creationDate }) => new Date(creationDate).toISOString(),
  'block-device-mapping.snapshot-id': ({ volumes }) => volumes.map(({ snapshotId }) => snapshotId),
  'source-image-id': ({ copyOf }) => copyOf?.imageId,
  'source-image-region': ({ copyOf }) => copyOf?.region,
};

export function imageHandlers(regionOf: (call: AwsCall) => Region, regionNamed: (name: string) => Region): Handlers {
  return {
    DescribeImages: operation<DescribeImagesRequest, DescribeImagesResult>((input, call) => {
      const region = regionOf(call);
      refusePaging(input.ImageIds, input, 'imageIds');
      const { ImageIds: ids, Owners: owners } = input;
      const seen =
        ids === undefined
          ? region.images.seen(call.asOf).filter(isVisible)
          : ids.map((id) => requireImage(region, id, call));
      const owned = seen.filter(
        ({ ownerId }) => owners === undefined || owners.some((owner) => isOwner(owner, ownerId)),
      );
      const usable = owned.filter((image) => input.ExecutableUsers?.some((user) => canUse(user, image)) ?? true);
      const found = filtered(usable, input.Filters, FILTERS);
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Images: items.map(shown), NextToken };
    }),
    RegisterImage: operation<RegisterImageRequest, RegisterImageResult>((input, call) =>
      register(regionOf(call), input, call),
    ),
    DeregisterImage: operation<DeregisterImageRequest, DeregisterImageResult>((input, call) => {
      const region = regionOf(call);
      const image = requireOwnImage(region, input.ImageId ?? '', call);
      region.images.remove(image, call.now);
      if (input.DeleteAssociatedSnapshots !== true) return { Return: true };
      call.authorize('ec2:DeleteSnapshot');
      const ids = image.volumes.map(({ snapshotId }) => snapshotId).filter((id) => id !== undefined);
      const DeleteSnapshotResults = ids.map((SnapshotId) => {
        const isUsed = region.images.all().some(({ volumes }) => volumes.some((one) => one.snapshotId === SnapshotId));
        if (isUsed) return { SnapshotId, ReturnCode: 'skipped' as const };
        deleteSnapshot(region, SnapshotId, call);
        return { SnapshotId, ReturnCode: 'success' as const };
      });
      return { Return: true, DeleteSnapshotResults };
    }),
    CopyImage: operation<CopyImageRequest, CopyImageResult>((input, call) =>
      copy(regionOf(call), regionNamed, input, call),
    ),
    DescribeImageAttribute: operation<DescribeImageAttributeRequest, ImageAttribute>((input, call) => {
      const image = requireOwnImage(regionOf(call), input.ImageId ?? '', call);
      if (input.Attribute === 'description') return { ImageId: image.id, Description: { Value: image.description } };
      if (input.Attribute !== 'launchPermission') {
        throw new AwsError('UnsupportedOperation', `The simulation does not have the attribute ${input.Attribute}`);
      }
      const LaunchPermissions = [
        ...(image.isPublic ? [{ Group: 'all' as const }] : []),
        ...[...image.sharedWith].map((UserId) => ({ UserId })),
      ];
      return { ImageId: image.id, LaunchPermissions };
    }),
    ModifyImageAttribute: operation<ModifyImageAttributeRequest, object>((input, call) => {
      const image = requireOwnImage(regionOf(call), input.ImageId ?? '', call);
      if (input.LaunchPermission === undefined) {
        throw new AwsError('UnsupportedOperation', 'The simulation changes launch permissions only');
      }
      for (const { Group: group, UserId: user } of input.LaunchPermission.Add ?? []) {
        if (group === 'all') image.isPublic = true;
        if (user !== undefined) image.sharedWith.add(user);
      }
      for (const { Group: group, UserId: user } of input.LaunchPermission.Remove ?? []) {
        if (group === 'all') image.isPublic = false;
        if (user !== undefined) image.sharedWith.delete(user);
      }
      return {};
    }),
  };
}

function isOwner(owner: string, ownerId: string): boolean {
  if (owner === 'self') return ownerId === ACCOUNT;
  return owner === ownerId || (owner === 'amazon' && ownerId === AMAZON);
}

function canUse(user: string, { isPublic, sharedWith, ownerId }: Image): boolean {
  if (user === 'all') return isPublic;
  return user === 'self' ? sharedWith.has(ACCOUNT) || ownerId === ACCOUNT : sharedWith.has(user);
}

function checkName(region: Region, name: string): void {
  if (!NAME.test(name)) {
    const message = `AMI names must be between 3 and 128 characters long, and may contain letters, numbers, '(', ')', \
'.', '-', '/' and '_'`;
    throw new AwsError('InvalidAMIName.Malformed', message);
  }
  const other = region.images.all().find((image) => image.ownerId === ACCOUNT && image.name === name);
  if (other === undefined) return;
  throw new AwsError('InvalidAMIName.Duplicate', `AMI name ${name} is already in use by AMI ${other.id}`);
}

function register(region: Region, input: RegisterImageRequest, call: AwsCall): RegisterImageResult {
  // EC2 tags the image only: a snapshot exists before.
  const tags = tagsByType(input.TagSpecifications, ['image']).get('image');
  if (tags !== undefined) call.authorize('ec2:CreateTags');
  const { Name: name = '', RootDeviceName: root = '/dev/sda1', BlockDeviceMappings: mappings = [] } = input;
  checkName(region, name);
  refuseUnsupported(input, ['ImageLocation', 'KernelId', 'RamdiskId', 'BillingProducts', 'UefiData']);
  if (mappings.length === 0)
    throw invalidCombination('Either the image location or the block device mappings must be given');
  const volumes = volumesOf(region, input, root, call);
  if (input.ImdsSupport === 'v2.0' && input.VirtualizationType !== 'hvm') {
    throw invalidCombination('ImdsSupport requires the virtualization type hvm');
  }
  const image = addImage(
    region,
    {
      ...{ ...IMAGE_DEFAULTS, name, description: input.Description ?? '', sharedWith: new Set() },
      ...{ creationDate: call.now, architecture: input.Architecture ?? 'i386', rootDeviceName: root, volumes },
      ...{ virtualization: input.VirtualizationType ?? 'paravirtual', enaSupport: input.EnaSupport ?? false },
      ...{ imdsSupport: input.ImdsSupport, bootMode: input.BootMode, availableAt: Infinity },
      ...{ state: 'pending', stateMessage: undefined },
    },
    tags,
  );
  finish(region, image, call);
  return { ImageId: image.id };
}

function volumesOf(
  region: Region,
  { BlockDeviceMappings: mappings = [] }: RegisterImageRequest,
  root: string,
  call: AwsCall,
): readonly ImageVolume[] {
  const encrypted = mappings.find(({ Ebs: ebs }) => ebs?.Encrypted !== undefined && ebs.SnapshotId !== undefined);
  if (encrypted !== undefined) {
    throw invalidMapping(
      `the encrypted flag cannot be specified since device ${encrypted.DeviceName} has a snapshot specified.`,
    );
  }
  const volumes = checkVolumes(region, mappings, { volumes: [], rootDeviceName: root }, call);
  const rootVolume = volumes.find(({ device }) => device === root);
  if (rootVolume?.snapshotId === undefined) {
    throw invalidMapping(`The root device ${root} is not found with a snapshot in the block device mappings`);
  }
  for (const { snapshotId } of volumes) {
    const snapshot = region.snapshots.get(snapshotId);
    if (snapshot !== undefined && snapshot.state !== 'completed') {
      throw new AwsError('IncorrectState', `The snapshot ${snapshotId} is not in the state completed`);
    }
  }
  return volumes;
}

function copy(
  region: Region,
  regionNamed: (name: string) => Region,
  input: CopyImageRequest,
  call: AwsCall,
): CopyImageResult {
  return region.idempotency.run(call.operation, input, () => {
    const byType = tagsByType(input.TagSpecifications, ['image', 'snapshot']);
    if (byType.size > 0) call.authorize('ec2:CreateTags');
    refuseUnsupported(input, ['DestinationOutpostArn', 'DestinationAvailabilityZone', 'DestinationAvailabilityZoneId']);
    const { Name: name = '', SourceImageId: sourceId = '', SourceRegion: sourceName = '' } = input;
    const source = regionNamed(sourceName);
    const original = requireImage(source, sourceId, call);
    if (original.state !== 'available') {
      throw new AwsError('InvalidAMIID.Unavailable', `The image id '[${sourceId}]' is not available`);
    }
    checkName(region, name);
    if (input.KmsKeyId !== undefined && input.Encrypted !== true) {
      throw new AwsError('InvalidParameterDependency', 'The parameter KmsKeyId requires the parameter Encrypted.');
    }
    const copied = new Map(input.CopyImageTags === true && original.ownerId === ACCOUNT ? original.tags : []);
    for (const [key, value] of byType.get('image') ?? []) copied.set(key, value);
    const resource = region.newResource(KINDS.image, copied);
    const volumes = original.volumes.map((volume): ImageVolume => {
      const from = source.snapshots.get(volume.snapshotId);
      if (from === undefined) return volume;
      const description = `Copied for DestinationAmi ${resource.id} from SourceAmi ${sourceId} for SourceSnapshot \
${from.id}.`;
      const encrypted = input.Encrypted ?? from.encrypted;
      const snapshot = copySnapshot(region, from, { description, encrypted, tags: byType.get('snapshot') }, call);
      return { ...volume, encrypted, snapshotId: snapshot.id };
    });
    const image = region.images.add({
      ...{
        ...original,
        ...resource,

        name,
        description: input.Description ?? original.description,
      },
      ...{ ownerId: ACCOUNT, isPublic: false, sharedWith: new Set<string>(), creationDate: call.now, volumes },
      ...{ state: 'pending' as const, availableAt: Infinity, copyOf: { imageId: sourceId, region: sourceName } },
    });
    finish(region, image, call);
    return () => ({ ImageId: image.id });
  });
}

function shown(image: Image): ShownImage {
  return {
    ...{ ImageId: image.id, Name: image.name, Description: image.description, OwnerId: image.ownerId },
    ...(image.ownerId === AMAZON ? { ImageOwnerAlias: 'amazon' } : {}),
    ...{ ImageLocation: `${image.ownerId}/${image.name}`, CreationDate: new Date(image.creationDate).toISOString() },
    ...{ Public: image.isPublic, State: image.state, ImageType: 'machine', Hypervisor: 'xen', RootDeviceType: 'ebs' },
    ...(image.stateMessage === undefined
      ? {}
      : { StateReason: { Code: 'Server.InternalError', Message: image.stateMessage } }),
    Architecture: image.architecture as ShownImage['Architecture'],
    VirtualizationType: image.virtualization as ShownImage['VirtualizationType'],
    ...{ EnaSupport: image.enaSupport, RootDeviceName: image.rootDeviceName },
    BootMode: image.bootMode as ShownImage['BootMode'],
    ImdsSupport: image.imdsSupport as ShownImage['ImdsSupport'],
    ...(image.platform === undefined
      ? { PlatformDetails: 'Linux/UNIX' }
      : { Platform: 'Windows', PlatformDetails: 'Windows' }),
    UsageOperation: image.platform === undefined ? 'RunInstances' : 'RunInstances:0002',
    BlockDeviceMappings: image.volumes.map((volume) => ({
      DeviceName: volume.device,
      Ebs: {
        ...{ SnapshotId: volume.snapshotId, VolumeSize: volume.sizeGib, VolumeType: volume.volumeType as VolumeType },
        ...{ Iops: volume.iops, Throughput: volume.throughput, Encrypted: volume.encrypted },
        DeleteOnTermination: volume.deleteOnTermination,
      },
    })),
    SourceImageId: image.copyOf?.imageId,
    SourceImageRegion: image.copyOf?.region,
    Tags: shownTags(image.tags),
  };
}
