/** The volumes of launches, and the limits of volume types. */

import type { BlockDeviceMapping, EbsBlockDevice } from '@aws-sdk/client-ec2';
import type { AwsCall } from '../call.js';
import { AwsError, invalidCombination, invalidValue, missing } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { KMS_KEY_ARN } from '../settings.js';
import type { Image, ImageVolume } from './records.js';
import { requireOwnSnapshot } from './snapshots.js';

export interface VolumePlan {
  readonly device: string;
  readonly snapshotId: string | undefined;
  readonly sizeGib: number;
  readonly volumeType: string;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly encrypted: boolean;
  readonly kmsKeyId: string | undefined;
  readonly deleteOnTermination: boolean;
}

/** Sizes in GiB by type: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html. */
const SIZES: Readonly<Record<string, readonly [min: number, max: number]>> = {
  gp2: [1, 16_384],
  gp3: [1, 65_536],
  io1: [4, 16_384],
  io2: [4, 65_536],
  st1: [125, 16_384],
  sc1: [125, 16_384],
  standard: [1, 1024],
};
const GP3_IOPS = [3000, 80_000] as const;
const GP3_THROUGHPUT = [125, 2000] as const;
const IO_IOPS: Readonly<Record<string, number>> = { io1: 64_000, io2: 256_000 };
/** Maximum IOPS per GiB. */
const IOPS_PER_GIB: Readonly<Record<string, number>> = { gp3: 500, io1: 50, io2: 1000 };
/** Maximum MiB/s of gp3 per provisioned IOPS. */
const THROUGHPUT_PER_IOPS = 0.25;
const BOOTABLE = ['gp2', 'gp3', 'io1', 'io2', 'standard'];
const DEVICE = /^(?:\/dev\/)?(?:sd[a-z]\d{0,2}|xvd[a-z]{1,2}\d?|disk\d)$/;

/** Returns the volumes of a launch: those of the image with the changes of the launch, and new ones. */
export function checkVolumes(
  region: Region,
  mappings: readonly BlockDeviceMapping[],
  image: Pick<Image, 'volumes' | 'rootDeviceName'>,
  call: AwsCall,
): readonly VolumePlan[] {
  const devices = mappings.map(({ DeviceName: device }) => device ?? '');
  const wrong = devices.find((device) => !DEVICE.test(device));
  if (wrong !== undefined) throw invalidValue(`Value (${wrong}) for parameter deviceName is invalid.`);
  const twice = devices.find((device, index) => devices.indexOf(device) !== index);
  if (twice !== undefined) throw invalidMapping(`Duplicate device name: ${twice}`);
  const changed = image.volumes.flatMap((volume) => {
    const mapping = mappings.find(({ DeviceName: device }) => device === volume.device);
    if (mapping?.NoDevice !== undefined && volume.device !== image.rootDeviceName) return [];
    return [checkVolume(region, volume.device, mapping?.Ebs ?? {}, volume, call)];
  });
  const added = mappings
    .filter(
      ({ DeviceName: device, NoDevice }) =>
        !image.volumes.some((one) => one.device === device) && NoDevice === undefined,
    )
    .map(({ DeviceName: device = '', Ebs: ebs }) => {
      if (ebs === undefined) throw new AwsError('UnsupportedOperation', 'The simulation has no instance store volumes');
      return checkVolume(region, device, ebs, undefined, call);
    });
  const root = changed.find(({ device }) => device === image.rootDeviceName);
  if (root !== undefined && !BOOTABLE.includes(root.volumeType)) {
    const message = `The volume type ${root.volumeType} cannot be used as a boot volume`;
    throw new AwsError('BootForVolumeTypeUnsupported', message);
  }
  return [...changed, ...added];
}

function checkVolume(
  region: Region,
  device: string,
  ebs: EbsBlockDevice,
  image: ImageVolume | undefined,
  call: AwsCall,
): VolumePlan {
  const snapshotId = ebs.SnapshotId ?? image?.snapshotId;
  // The snapshots of public images are usable by their images only.
  const isOfImage = ebs.SnapshotId === undefined || ebs.SnapshotId === image?.snapshotId;
  const snapshot = isOfImage ? undefined : requireOwnSnapshot(region, snapshotId ?? '', call);
  const smallest = snapshot?.sizeGib ?? image?.sizeGib ?? 0;
  const sizeGib = ebs.VolumeSize ?? image?.sizeGib ?? snapshot?.sizeGib;
  if (sizeGib === undefined) throw missing('size/snapshot');
  if (sizeGib < smallest) {
    throw invalidMapping(
      `Volume of size ${sizeGib}GB is smaller than snapshot '${snapshotId}', expect size >= ${smallest}GB`,
    );
  }
  if (ebs.Encrypted === false && snapshotId !== undefined) {
    throw invalidMapping(`the encrypted flag cannot be specified since device ${device} has a snapshot specified.`);
  }
  const volumeType = ebs.VolumeType ?? image?.volumeType ?? 'gp2';
  const isSameType = volumeType === image?.volumeType;
  const rates = checkRates({
    ...{ volumeType, sizeGib },
    iops: ebs.Iops ?? (isSameType ? image.iops : undefined),
    throughput: ebs.Throughput ?? (isSameType ? image.throughput : undefined),
  });
  const encrypted = ebs.Encrypted ?? image?.encrypted ?? snapshot?.encrypted ?? false;
  if (ebs.KmsKeyId !== undefined && !encrypted) {
    throw new AwsError(
      'InvalidParameterDependency',
      'The parameter KmsKeyId requires the parameter Encrypted to be set.',
    );
  }
  return {
    ...{ device, snapshotId, sizeGib, volumeType, encrypted, ...rates },
    kmsKeyId: encrypted ? (ebs.KmsKeyId ?? KMS_KEY_ARN) : undefined,
    deleteOnTermination: ebs.DeleteOnTermination ?? image?.deleteOnTermination ?? true,
  };
}

export interface Rates {
  readonly volumeType: string;
  readonly sizeGib: number;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
}

/** Checks size, IOPS and throughput of a volume, and returns those that it has. */
export function checkRates({ volumeType, sizeGib, iops, throughput }: Rates): Pick<Rates, 'iops' | 'throughput'> {
  const [min, max] = SIZES[volumeType] ?? [1, 16_384];
  if (sizeGib < min || sizeGib > max) {
    throw invalidValue(`Volume size of ${sizeGib}GiB is invalid for ${volumeType}: expected ${min} to ${max}.`);
  }
  if (throughput !== undefined && volumeType !== 'gp3') {
    throw invalidCombination(`The parameter throughput is not supported for ${volumeType} volumes.`);
  }
  if (volumeType === 'io1' || volumeType === 'io2') {
    if (iops === undefined) throw missing('iops');
    requireBetween(volumeType, 'iops', iops, [100, IO_IOPS[volumeType] ?? 0]);
  } else if (volumeType === 'gp3') {
    requireBetween(volumeType, 'iops', iops ?? GP3_IOPS[0], GP3_IOPS);
    requireBetween(volumeType, 'throughput', throughput ?? GP3_THROUGHPUT[0], GP3_THROUGHPUT);
  } else if (iops !== undefined) {
    throw invalidCombination(`The parameter iops is not supported for ${volumeType} volumes.`);
  }
  const perGib = IOPS_PER_GIB[volumeType];
  if (perGib !== undefined && iops !== undefined && iops > GP3_IOPS[0] && iops > perGib * sizeGib) {
    throw invalidCombination(`Iops to volume size ratio of ${iops / sizeGib} is too high; maximum is ${perGib}`);
  }
  const shownIops = volumeType === 'gp3' ? (iops ?? GP3_IOPS[0]) : iops;
  const shownThroughput = volumeType === 'gp3' ? (throughput ?? GP3_THROUGHPUT[0]) : undefined;
  if ((shownThroughput ?? 0) > (shownIops ?? 0) * THROUGHPUT_PER_IOPS && volumeType === 'gp3') {
    throw invalidCombination(`Throughput (MiBps) to iops ratio is too high; maximum is ${THROUGHPUT_PER_IOPS}`);
  }
  return { iops: shownIops, throughput: shownThroughput };
}

function requireBetween(type: string, name: string, value: number, [min, max]: readonly [number, number]): void {
  if (value >= min && value <= max) return;
  throw invalidValue(`Volume ${name} of ${value} is invalid for ${type}: expected ${min} to ${max}.`);
}

export function invalidMapping(message: string): AwsError {
  return new AwsError('InvalidBlockDeviceMapping', message);
}
