/** Lists and deletes resources that a crashed launcher or builder may have left. */

import { ConflictError, isDriverError, type Call, type Resource } from '@nodepool/core';
import type { Instance, Volume } from '@aws-sdk/client-ec2';
import { tagsIn } from './client/ec2.js';
import { errorOfCode } from './errors.js';
import { isShared, LAUNCH_TAG, LAUNCHED_AT_TAG, ownersOf, tagsOf, tagsOfHost, type Tags } from './identity.js';
import { isCopiedImage, isCopiedSnapshot } from './image-identity.js';
import { deleteMultipart, listImageLeftovers } from './image-leftovers.js';
import type { ProviderSession } from './session.js';

/** Returns all tagged resources that are no copies, in the order in which AWS allows their deletion. */
export async function listResources(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { ec2 } = session;
  const instances = await ec2.listInstances(call);
  const [hosts, volumes, interfaces, addresses, images, snapshots, leftovers] = await Promise.all([
    ec2.hosts(call),
    ec2.volumes(call, true),
    ec2.interfaces(call),
    ec2.addresses(call),
    ec2.images({ owners: ['self'], filters: [{ Name: 'tag-key', Values: ['nodepool_upload_id'] }] }, call),
    ec2.snapshots(call),
    listImageLeftovers(session, call),
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
      .map((host) => resource('host', host.HostId, tagsOfHost(host))),
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
    ...leftovers,
  ];
  return found
    .filter(({ tags, externalId }) => 'nodepool_provider_name' in tags && externalId !== '')
    .filter(({ tags }) => !isShared(tags) || !launched.has(tags[LAUNCH_TAG] ?? ''))
    .map((each) => ({ ...each, ...ownersOf(each.tags) }));
}

/** Deletes a resource. Succeeds if it does not exist. */
export async function deleteResource(session: ProviderSession, resource: Resource, call: Call): Promise<void> {
  const { kind, externalId } = resource;
  try {
    if (kind === 'multipart-upload') {
      await deleteMultipart(session, externalId, call);
      return;
    }
    if (typeof externalId !== 'string') throw new ConflictError(`${kind} ${JSON.stringify(externalId)} is none of AWS`);
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
    case 'import':
      await session.imageCalls.cancelImport(id, call);
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

/** Time after the launch within which EC2 creates the volumes of an instance (ms). */
const VOLUME_CREATION_MS = 600_000;

/** Returns true if a volume is certainly not of the launch in its tags, e.g. because it was restored from a backup. */
function isRestored({ CreateTime, Tags }: Volume): boolean {
  const launchedAt = Date.parse(tagsIn(Tags)[LAUNCHED_AT_TAG] ?? '');
  if (Number.isNaN(launchedAt) || CreateTime === undefined) return true;
  return Math.abs(CreateTime.getTime() - launchedAt) > VOLUME_CREATION_MS;
}
