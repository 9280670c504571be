/** Lists and deletes resources that a crashed launcher or builder may have left. */

import { ConflictError, isDriverError, type Call, type Resource } from '@nodepool/core';
import type { Instance } from '@aws-sdk/client-ec2';
import { tagsIn } from './client/ec2.js';
import { errorOfCode } from './errors.js';
import { isShared, tagsOf, type Tags } from './identity.js';
import type { ProviderSession } from './session.js';

/** Returns all tagged resources that are no copies, in the order in which AWS allows their deletion. */
export async function listResources(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { ec2 } = session;
  const instances = await ec2.listInstances(call);
  const [hosts, volumes, interfaces, addresses] = await Promise.all([
    ec2.hosts(call),
    ec2.volumes(call, true),
    ec2.interfaces(call),
    ec2.addresses(call),
  ]);
  const occupied = new Set(instances.filter(exists).flatMap(({ Placement }) => Placement?.HostId ?? []));
  const launched = new Set(instances.filter(exists).flatMap(({ ClientToken }) => ClientToken ?? []));
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
      .filter(({ State }) => State === 'available' || State === 'error')
      .map(({ VolumeId, Tags }) => resource('volume', VolumeId, tagsIn(Tags))),
  ];
  return found
    .filter(({ tags, externalId }) => 'nodepool_provider_name' in tags && externalId !== '')
    .filter(({ tags }) => !isShared(tags) || !launched.has(tags['nodepool_launch'] ?? ''));
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
    case 'volume':
      await ec2.deleteVolume(id, call);
      return;
    default:
      throw new ConflictError(`${kind} is not a kind of resource that this driver creates`);
  }
}

function exists({ State }: Instance): boolean {
  return State?.Name !== 'terminated' && State?.Name !== 'shutting-down';
}

function resource(kind: string, id: string | undefined, tags: Tags): Resource {
  return { kind, externalId: id ?? '', name: tags['Name'] ?? id ?? '', tags };
}
