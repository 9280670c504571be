/** Lists and deletes resources that a crashed launcher or builder may have left. */

import {
  ConflictError,
  IMAGE_TAGS,
  imageTagsHash,
  isDriverError,
  type Call,
  type ImageTags,
  type Resource,
} from '@nodepool/core';
import type { Instance, Snapshot, Volume } from '@aws-sdk/client-ec2';
import { tagsIn } from './client/ec2.js';
import { errorOfCode } from './errors.js';
import { isShared, LAUNCH_TAG, LAUNCHED_AT_TAG, tagsOf, tagsOfPart, type Tags } from './identity.js';
import { IMAGE_NAME_TAG, isCopiedImage, OBJECT_PREFIX } from './images.js';
import type { ProviderSession } from './session.js';

/** Returns all tagged resources that are no copies, in the order in which AWS allows their deletion. */
export async function listResources(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { ec2 } = session;
  const instances = await ec2.listInstances(call);
  const [hosts, volumes, interfaces, addresses, images, snapshots, objects] = await Promise.all([
    ec2.hosts(call),
    ec2.volumes(call, true),
    ec2.interfaces(call),
    ec2.addresses(call),
    ec2.images({ owners: ['self'], filters: [{ Name: 'tag-key', Values: ['nodepool_upload_id'] }] }, call),
    ec2.snapshots(call),
    listObjects(session, call),
  ]);
  const inUse = new Set(
    images.flatMap(({ BlockDeviceMappings = [] }) => BlockDeviceMappings.flatMap(({ Ebs }) => Ebs?.SnapshotId ?? [])),
  );
  const occupied = new Set(instances.filter(exists).flatMap(({ Placement }) => Placement?.HostId ?? []));
  const launched = new Set(instances.filter(exists).flatMap(({ Tags }) => tagsIn(Tags)[LAUNCH_TAG] ?? []));
  const found = [
    ...instances.filter(exists).map((instance) => resource('instance', instance.InstanceId, tagsOf(instance))),
    ...hosts
      .filter(({ HostId = '', State }) => State !== 'released' && !occupied.has(HostId))
      .map(({ HostId, Tags }) => resource('host', HostId, tagsIn(Tags))),
    ...interfaces
      .filter(({ Status }) => Status === 'available')
      .map(({ NetworkInterfaceId, TagSet }) => resource('interface', NetworkInterfaceId, tagsIn(TagSet))),
    ...addresses
      .filter(({ AssociationId }) => AssociationId === undefined)
      .map(({ AllocationId, Tags }) => resource('address', AllocationId, tagsIn(Tags))),
    ...volumes
      .filter((volume) => (volume.State === 'available' || volume.State === 'error') && !isRestored(volume))
      .map(({ VolumeId, Tags }) => resource('volume', VolumeId, tagsIn(Tags))),
    ...images
      .filter((image) => !isCopiedImage(image))
      .map(({ ImageId, Tags }) => resource('image', ImageId, tagsIn(Tags))),
    ...snapshots
      .filter((snapshot) => !inUse.has(snapshot.SnapshotId ?? '') && !isCopiedSnapshot(snapshot))
      .map(({ SnapshotId, Tags }) => resource('snapshot', SnapshotId, tagsIn(Tags))),
    ...objects,
  ];
  return (
    found
      .filter(({ tags, externalId }) => 'nodepool_provider_name' in tags && externalId !== '')
      // A part of a shared launch can belong to any of its instances.
      .filter(({ tags }) => !isShared(tags) || !launched.has(tags[LAUNCH_TAG] ?? ''))
      .map((each) => ({ ...each, tags: tagsOfPart(each.tags) }))
  );
}

/** Deletes a resource. Succeeds if it does not exist. */
export async function deleteResource(session: ProviderSession, resource: Resource, call: Call): Promise<void> {
  const { kind, externalId } = resource;
  if (typeof externalId !== 'string') throw new ConflictError(`${kind} ${JSON.stringify(externalId)} is none of AWS`);
  try {
    await deletionOf(session, kind, externalId, call);
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}

async function deletionOf(session: ProviderSession, kind: string, id: string, call: Call): Promise<void> {
  const { ec2, terminations } = session;
  switch (kind) {
    case 'instance':
      await terminations.terminate(id);
      return;
    case 'host': {
      const refusal = await ec2.releaseHost(id, call);
      if (refusal !== undefined) throw errorOfCode('ec2 ReleaseHosts', refusal.code, refusal.text);
      return;
    }
    case 'interface':
      await ec2.deleteInterface(id, call);
      return;
    case 'address':
      await ec2.releaseAddress(id, call);
      return;
    case 'image':
      await session.images.deleteImage(id, call);
      return;
    case 'snapshot':
      await ec2.deleteSnapshot(id, call);
      return;
    case 'object':
      await session.imageCalls.deleteObject({ Bucket: session.config.bucket ?? '', Key: id }, call);
      return;
    case 'volume':
      await ec2.deleteVolume(id, call);
      return;
    default:
      throw new ConflictError(`${kind} is not a kind of resource that this driver creates`);
  }
}

function exists({ State }: Instance): boolean {
  return State?.Name !== 'terminated';
}

function resource(kind: string, id: string | undefined, tags: Tags): Resource {
  return { kind, externalId: id ?? '', name: tags['Name'] ?? id ?? '', tags };
}

/** Returns the objects of uploads. Omits them if the bucket cannot be listed, so that other leaks are found. */
async function listObjects({ config, imageCalls }: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { bucket: Bucket } = config;
  if (Bucket === undefined) return [];
  try {
    const keys = await imageCalls.listObjects(Bucket, OBJECT_PREFIX, call);
    const found: Resource[] = [];
    for (const Key of keys) {
      const tags = await imageCalls.objectTags({ Bucket, Key }, call);
      // A copy of an object has its tags, but another key.
      if (isComplete(tags) && Key.includes(`-${imageTagsHash(tags)}.`)) found.push(resource('object', Key, tags));
    }
    return found;
  } catch (error) {
    if (call.signal.aborted) throw error;
    call.log.warn('Could not list the objects in the bucket; cleanup skips them', { bucket: Bucket, error });
    return [];
  }
}

function isComplete(tags: Tags): tags is Tags & ImageTags {
  return IMAGE_TAGS.every((tag) => tag in tags);
}

/** Time after the launch within which EC2 creates the volumes of an instance (ms). */
const VOLUME_CREATION_MS = 600_000;

/** Returns true if a volume is certainly not of the launch in its tags, e.g. because it was restored from a backup. */
function isRestored({ CreateTime, Tags }: Volume): boolean {
  const launchedAt = Date.parse(tagsIn(Tags)[LAUNCHED_AT_TAG] ?? '');
  if (Number.isNaN(launchedAt) || CreateTime === undefined) return true;
  return Math.abs(CreateTime.getTime() - launchedAt) > VOLUME_CREATION_MS;
}

/** Returns true if a snapshot is a copy of that of an upload, which has the name of its image as its description. */
function isCopiedSnapshot({ Description = '', Tags }: Snapshot): boolean {
  const name = tagsIn(Tags)[IMAGE_NAME_TAG];
  return name !== undefined && !Description.includes(name);
}
