/** Volumes. */

import type {
  AttachVolumeRequest,
  CreateVolumeRequest,
  DeleteVolumeRequest,
  DescribeVolumesRequest,
  DescribeVolumesResult,
  DetachVolumeRequest,
  Volume as ShownVolume,
  VolumeAttachment,
  VolumeType,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidValue, missing, refuseUnsupported } from '../protocol/aws-error.js';
import { volumeQuotas } from '../quotas.js';
import type { Region } from '../region.js';
import { KMS_KEY_ARN } from '../settings.js';
import { checkRates } from './launch-volumes.js';
import { filtered, pageOf, refusePaging, type Filterable } from './lists.js';
import type { Volume } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

export interface NewVolume extends Pick<
  Volume,
  'zone' | 'sizeGib' | 'volumeType' | 'iops' | 'throughput' | 'encrypted' | 'kmsKeyId' | 'snapshotId'
> {
  readonly tags: ReadonlyMap<string, string> | undefined;
}

export function newVolume(region: Region, { tags, ...fields }: NewVolume): Volume {
  return { ...fields, ...region.newResource(KINDS.volume, tags), availableAt: region.now, attachment: undefined };
}

/** Returns the size and IOPS of the volumes of a type, which count against its quotas. */
export function volumeUsage(region: Region, volumeType: string): { readonly gib: number; readonly iops: number } {
  const volumes = region.volumes.all().filter((volume) => volume.volumeType === volumeType);
  return {
    gib: volumes.reduce((sum, { sizeGib }) => sum + sizeGib, 0),
    iops: volumes.reduce((sum, { iops = 0 }) => sum + iops, 0),
  };
}

function volumeState(volume: Volume, asOf: number): 'in-use' | 'creating' | 'available' {
  if (volume.attachment !== undefined) return 'in-use';
  return asOf < volume.availableAt ? 'creating' : 'available';
}

const FILTERS = (asOf: number): Filterable<Volume> => ({
  'volume-id': ({ id }) => id,
  status: (volume) => volumeState(volume, asOf),
  size: ({ sizeGib }) => String(sizeGib),
  'volume-type': ({ volumeType }) => volumeType,
  'availability-zone': ({ zone }) => zone,
  'snapshot-id': ({ snapshotId }) => snapshotId,
  encrypted: ({ encrypted }) => String(encrypted),
  'attachment.instance-id': ({ attachment }) => attachment?.instanceId,
  'attachment.device': ({ attachment }) => attachment?.device,
  'attachment.delete-on-termination': ({ attachment }) => attachment && String(attachment.deleteOnTermination),
});

export function volumeHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    DescribeVolumes: operation<DescribeVolumesRequest, DescribeVolumesResult>((input, call) => {
      const region = regionOf(call);
      refusePaging(input.VolumeIds, input, 'volumeIds');
      const { VolumeIds: ids } = input;
      const seen = ids === undefined ? region.volumes.seen(call.asOf) : region.volumes.require(ids, call.asOf);
      const found = filtered(seen, input.Filters, FILTERS(call.asOf));
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Volumes: items.map((volume) => shown(volume, call.asOf)), NextToken };
    }),
    CreateVolume: operation<CreateVolumeRequest, ShownVolume>((input, call) =>
      createVolume(regionOf(call), input, call),
    ),
    DeleteVolume: operation<DeleteVolumeRequest, object>((input, call) => {
      const region = regionOf(call);
      const volume = region.volumes.one(input.VolumeId ?? '', call.asOf);
      if (volume.attachment !== undefined) {
        const message = `Volume ${volume.id} is currently attached to ${volume.attachment.instanceId}`;
        throw new AwsError('VolumeInUse', message);
      }
      region.volumes.remove(volume, call.now);
      return {};
    }),
    AttachVolume: operation<AttachVolumeRequest, VolumeAttachment>((input, call) => {
      const region = regionOf(call);
      const volume = region.volumes.one(input.VolumeId ?? '', call.asOf);
      const instance = region.instances.one(input.InstanceId ?? '', call.asOf);
      if (volumeState(volume, call.now) !== 'available') {
        throw new AwsError(
          volume.attachment === undefined ? 'IncorrectState' : 'VolumeInUse',
          `${volume.id} is in use`,
        );
      }
      if (volume.zone !== instance.zone) {
        throw new AwsError('InvalidVolume.ZoneMismatch', `The volume '${volume.id}' is not in the same zone`);
      }
      volume.attachment = {
        ...{ instanceId: instance.id, device: input.Device ?? '', deleteOnTermination: false, at: call.now },
      };
      instance.volumeIds.push(volume.id);
      return shownAttachment(volume) ?? {};
    }),
    DetachVolume: operation<DetachVolumeRequest, VolumeAttachment>((input, call) => {
      const region = regionOf(call);
      const volume = region.volumes.one(input.VolumeId ?? '', call.asOf);
      const attachment = shownAttachment(volume);
      if (attachment === undefined)
        throw new AwsError('IncorrectState', `Volume '${volume.id}' is in the 'available' state.`);
      const root = region.instances.get(volume.attachment?.instanceId)?.rootDeviceName;
      if (root === attachment.Device) throw new AwsError('OperationNotPermitted', 'Unable to detach root volume');
      volume.attachment = undefined;
      return { ...attachment, State: 'detached' };
    }),
  };
}

function createVolume(region: Region, input: CreateVolumeRequest, call: AwsCall): ShownVolume {
  return region.idempotency.run(call.operation, input, () => {
    const tags = tagsByType(input.TagSpecifications, ['volume']).get('volume');
    if (tags !== undefined) call.authorize('ec2:CreateTags');
    const { AvailabilityZone: zone, SnapshotId: snapshotId, VolumeType: volumeType = 'gp2' } = input;
    refuseUnsupported(input, ['AvailabilityZoneId', 'OutpostArn', 'MultiAttachEnabled']);
    if (zone === undefined) throw missing('zone');
    if (!region.zones.includes(zone)) throw new AwsError('InvalidZone.NotFound', `The zone '${zone}' does not exist.`);
    const snapshot = snapshotId === undefined ? undefined : region.snapshots.one(snapshotId, call.asOf);
    const sizeGib = input.Size ?? snapshot?.sizeGib;
    if (sizeGib === undefined) throw missing('size/snapshot');
    if (sizeGib < (snapshot?.sizeGib ?? 0)) throw invalidValue(`The volume is smaller than snapshot '${snapshotId}'`);
    const rates = checkRates({ volumeType, sizeGib, iops: input.Iops, throughput: input.Throughput });
    const codes = volumeQuotas(volumeType);
    const used = volumeUsage(region, volumeType);
    if (used.gib + sizeGib > region.quotas.value(codes.storage) * 1024) {
      throw new AwsError('VolumeLimitExceeded', 'Maximum number of volumes exceeded.');
    }
    if (codes.iops !== undefined && used.iops + (rates.iops ?? 0) > region.quotas.value(codes.iops)) {
      throw new AwsError('MaxIOPSLimitExceeded', 'Maximum IOPS limit exceeded.');
    }
    const encrypted = input.Encrypted ?? snapshot?.encrypted ?? false;
    const kmsKeyId = encrypted ? (input.KmsKeyId ?? KMS_KEY_ARN) : undefined;
    const volume = newVolume(region, {
      ...{ zone, sizeGib, volumeType, encrypted, kmsKeyId, snapshotId, tags },
      ...rates,
    });
    region.volumes.add({ ...volume, availableAt: call.now + region.settings.resourceMs });
    return () => shown(region.volumes.get(volume.id) ?? volume, region.now);
  });
}

function shown(volume: Volume, asOf: number): ShownVolume {
  const attachment = shownAttachment(volume);
  return {
    ...{
      VolumeId: volume.id,
      Size: volume.sizeGib,
      SnapshotId: volume.snapshotId ?? '',
      AvailabilityZone: volume.zone,
    },
    ...{ State: volumeState(volume, asOf), CreateTime: new Date(volume.createdAt), MultiAttachEnabled: false },
    ...{ VolumeType: volume.volumeType as VolumeType, Iops: volume.iops, Throughput: volume.throughput },
    ...{ Encrypted: volume.encrypted, KmsKeyId: volume.kmsKeyId, Tags: shownTags(volume.tags) },
    Attachments: attachment === undefined ? [] : [attachment],
  };
}

function shownAttachment({ id, attachment }: Volume): VolumeAttachment | undefined {
  if (attachment === undefined) return undefined;
  const { instanceId, device, deleteOnTermination, at } = attachment;
  return {
    ...{ VolumeId: id, InstanceId: instanceId, Device: device, State: 'attached' },
    ...{ DeleteOnTermination: deleteOnTermination, AttachTime: new Date(at) },
  };
}
