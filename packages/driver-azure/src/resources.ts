/** Lists and deletes resources that a crashed launcher or builder may have left in a resource group. */

import { ConflictError, isDriverError, type Call, type Resource } from '@nodepool/core';
import type { Accepted } from './client/arm.js';
import type { PublicIpAddress } from './client/types.js';
import { nameOf } from './instance.js';
import { groupIn, isCopy, nameIn, tagsOf, type NamedResource } from './identity.js';
import type { ProviderSession } from './provider-session.js';

/**
 * Returns all tagged resources that are no copies and do not belong to a VM, in the order in which Azure allows their
 * deletion: users of a resource come first. The resources of a VM are deleted with it.
 */
export async function listTagged(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { client, config } = session;
  const group = config.resourceGroup.toLowerCase();
  const vms = (await client.listVms(call)).filter(({ id }) => groupIn(id) === group);
  const nics = await client.listNics(call);
  const publicIps = await client.listPublicIps(call);
  const images = await client.listImages(call);
  const disks = await client.listDisks(call);
  const loose = nics.filter((nic) => nic.properties?.virtualMachine === undefined);
  const attached = nics
    .filter((nic) => nic.properties?.virtualMachine !== undefined)
    .map(({ id = '' }) => `${id.toLowerCase()}/`);
  // The address of an unattached interface is also unattached, and can be deleted after the interface.
  const isLoose = ({ properties }: PublicIpAddress): boolean =>
    !attached.some((nic) => properties?.ipConfiguration?.id?.toLowerCase().startsWith(nic));
  return [
    ...vms.flatMap((vm) => tagged('instance', vm)),
    ...loose.flatMap((nic) => tagged('nic', nic)),
    ...publicIps.filter(isLoose).flatMap((ip) => tagged('public-ip', ip)),
    ...images.flatMap((image) => tagged('image', image)),
    ...disks.filter((disk) => disk.managedBy === undefined).flatMap((disk) => tagged('disk', disk)),
  ];
}

/** Deletes a resource and waits for its end, on which the next one may depend. Succeeds if it does not exist. */
export async function deleteResource(
  session: ProviderSession,
  { kind, externalId }: Resource,
  call: Call,
): Promise<void> {
  const name = nameOf(externalId);
  const finish = async (what: string, begin: () => Promise<Accepted>): Promise<void> => {
    await session.withRetries(() => session.finished(`${what} ${kind} ${name}`, begin(), call), call, 3);
  };
  const remove = (): Promise<void> => finish('deletion of', () => deletionOf(session, kind, name, call));
  try {
    await remove().catch(async (error: unknown) => {
      if (kind !== 'disk' || !isDriverError(error) || error.code !== 'conflict') throw error;
      // Azure does not delete a disk while the upload of a killed builder still has access to it.
      await finish('end of access to', () => session.client.revokeAccess(name, call));
      await remove();
    });
  } catch (error) {
    if (isDriverError(error) && error.code === 'not-found') return;
    throw error;
  }
}

function deletionOf({ client }: ProviderSession, kind: string, name: string, call: Call): Promise<Accepted> {
  switch (kind) {
    case 'image':
      return client.deleteImage(name, call);
    case 'nic':
      return client.deleteNic(name, call);
    case 'public-ip':
      return client.deletePublicIp(name, call);
    case 'disk':
      return client.deleteDisk(name, call);
    case 'instance':
      return client.deleteVm(name, call);
    default:
      return Promise.reject(new ConflictError(`${kind} is not a kind of resource that this driver creates`));
  }
}

function tagged(kind: string, resource: NamedResource): readonly Resource[] {
  const tags = tagsOf(resource);
  const name = resource.name ?? nameIn(resource.id);
  if (name === undefined || !('nodepool_provider_name' in tags) || isCopy(resource)) return [];
  return [{ kind, externalId: name, name, tags }];
}
