/** Inspects the cloud's content for tests. */

import type {
  InspectedAddress,
  InspectedHost,
  InspectedImage,
  InspectedImportTask,
  InspectedInstance,
  InspectedInterface,
  InspectedSnapshot,
  InspectedTemplate,
  InspectedVolume,
  Inspector,
} from './api.js';
import { hostState } from './ec2/hosts.js';
import { currentState } from './ec2/lifecycle.js';
import type { Host, Image, ImportTask, Instance, Snapshot, Volume } from './ec2/records.js';
import { publicIpOf } from './ec2/show-instance.js';
import type { Resource, Table } from './ec2/table.js';
import type { Region } from './region.js';
import type { Buckets } from './s3/buckets.js';
import { ACCOUNT, QUEUE } from './settings.js';
import type { Queues } from './sqs.js';
import type { Timeline } from './timeline.js';

export interface Inspected {
  readonly regions: readonly Region[];
  readonly buckets: Buckets;
  readonly queues: Queues;
  readonly timeline: Timeline;
}

export function inspectorOf({ regions, buckets, queues, timeline }: Inspected): Inspector {
  const all = <T extends Resource, I>(
    tableOf: (region: Region) => Table<T>,
    inspect: (region: Region, resource: T) => I,
  ): (() => readonly (I & Common)[]) => {
    return () => {
      timeline.settle();
      return regions.flatMap((region) =>
        tableOf(region)
          .all()
          .map((resource) => ({ ...commonOf(region, resource), ...inspect(region, resource) })),
      );
    };
  };
  const images = all(({ images: table }) => table, inspectImage);
  const snapshots = all(
    ({ snapshots: table }) => table,
    (_region, { ownerId, ...rest }: Snapshot) => ({
      ...inspectSnapshot(rest),
      ownerId,
    }),
  );
  const snapshotTasks = all(({ snapshotTasks: table }) => table, inspectTask);
  const imageTasks = all(({ imageTasks: table }) => table, inspectTask);
  return {
    instances: all(({ instances }) => instances, inspectInstance),
    volumes: all(({ volumes }) => volumes, inspectVolume),
    networkInterfaces: all(
      ({ interfaces }) => interfaces,
      (_region, { subnetId, attachment }): Own<InspectedInterface> => ({
        ...{
          subnetId,
          instanceId: attachment?.instanceId,
          deleteOnTermination: attachment?.deleteOnTermination ?? false,
        },
      }),
    ),
    addresses: all(
      ({ addresses }) => addresses,
      (region, { publicIp, interfaceId }): Own<InspectedAddress> => ({
        ...{ publicIp, instanceId: region.interfaces.get(interfaceId)?.attachment?.instanceId },
      }),
    ),
    hosts: all(({ hosts }) => hosts, inspectHost),
    launchTemplates: all(
      ({ templates }) => templates,
      (_region, { name }): Own<InspectedTemplate> => ({ name }),
    ),
    images: () => images().filter(({ ownerId }) => ownerId === ACCOUNT),
    snapshots: () => snapshots().filter(({ ownerId }) => ownerId === ACCOUNT),
    importTasks: () => [...snapshotTasks(), ...imageTasks()],
    objects: () => buckets.inspectObjects(),
    uploads: () => buckets.inspectUploads(),
    messages: () => {
      timeline.settle();
      return queues.count(QUEUE);
    },
  };
}

interface Common {
  readonly region: string;
  readonly id: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** The fields that a kind of resource has beyond the common ones. */
type Own<T> = Omit<T, keyof Common>;

function commonOf({ name }: Region, { id, tags }: Resource): Common {
  return { region: name, id, tags: Object.fromEntries(tags) };
}

function inspectInstance(region: Region, instance: Instance): Own<InspectedInstance> {
  const nics = instance.interfaceIds.map((id) => region.interfaces.get(id)).filter((nic) => nic !== undefined);
  const volumes = instance.volumeIds.filter((id) => region.volumes.get(id)?.attachment?.instanceId === instance.id);
  return {
    ...{
      state: currentState(instance),
      instanceType: instance.type.name,
      zone: instance.zone,
      market: instance.market,
    },
    ...{ imageId: instance.imageId, subnetId: instance.subnetId, securityGroupIds: instance.groupIds },
    ...{ keyName: instance.keyName, clientToken: instance.clientToken, launchIndex: instance.launchIndex },
    ...{ fleetId: instance.fleetId, hostId: instance.hostId, ebsOptimized: instance.ebsOptimized },
    userData: instance.userData === undefined ? undefined : Buffer.from(instance.userData, 'base64').toString(),
    instanceProfile: instance.profileArn,
    metadataTokens: instance.metadata.HttpTokens ?? 'optional',
    privateIp: nics[0]?.privateIp ?? '',
    publicIp: publicIpOf(region, instance, region.now),
    ipv6: nics.flatMap(({ ipv6 }) => ipv6),
    volumeIds: volumes,
    networkInterfaceIds: nics.map(({ id }) => id),
    stateReason: instance.stateReason?.code,
  };
}

function inspectVolume(_region: Region, volume: Volume): Own<InspectedVolume> {
  const { sizeGib, volumeType, iops, throughput, encrypted, kmsKeyId, attachment } = volume;
  return {
    ...{ sizeGib, volumeType, iops, throughput, encrypted, kmsKeyId, instanceId: attachment?.instanceId },
    state: attachment === undefined ? 'available' : 'in-use',
    deleteOnTermination: attachment?.deleteOnTermination ?? false,
  };
}

function inspectHost(region: Region, host: Host): Own<InspectedHost> {
  const instances = region.instances
    .all()
    .filter((one) => one.hostId === host.id && currentState(one) !== 'terminated');
  return {
    ...{ state: hostState(host, region.now), instanceType: host.instanceType.name, zone: host.zone },
    instanceIds: instances.map(({ id }) => id),
  };
}

function inspectImage(_region: Region, image: Image): Own<InspectedImage> {
  const root = image.volumes.find(({ device }) => device === image.rootDeviceName);
  const { sizeGib = 0, volumeType = '', iops, throughput } = root ?? {};
  return {
    ...{ state: image.state, name: image.name, ownerId: image.ownerId, isPublic: image.isPublic },
    ...{ architecture: image.architecture, enaSupport: image.enaSupport, imdsSupport: image.imdsSupport },
    rootDeviceName: image.rootDeviceName,
    snapshotIds: image.volumes.map(({ snapshotId }) => snapshotId).filter((id) => id !== undefined),
    rootVolume: { sizeGib, volumeType, iops, throughput },
    copyOf: image.copyOf,
  };
}

function inspectSnapshot(snapshot: Omit<Snapshot, 'ownerId'>): Own<InspectedSnapshot> {
  const { state, sizeGib, description, encrypted, sha256 } = snapshot;
  return { state, sizeGib, description, encrypted, sha256 };
}

function inspectTask(_region: Region, task: ImportTask): Own<InspectedImportTask> {
  const { status, kind, bucket, key, message = '' } = task;
  return { state: status, kind, bucket, key, message };
}
