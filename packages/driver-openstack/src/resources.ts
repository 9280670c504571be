/** Lists and deletes resources that a crashed launcher or builder may have left in a project. */

import { isDriverError, type Call, type ExternalId, type Resource, type ResourceCall } from '@nodepool/core';
import { isOriginal } from './image-identity.js';
import { tagsIn, VOLUME_ID } from './tags.js';
import type { ProviderSession } from './provider-session.js';

/** States of volumes without a server. A volume in use is deleted with its server. */
const UNATTACHED = new Set(['available', 'error', 'error_deleting']);

/** Returns all tagged resources except copies that inherited the tags; the caller identifies its own. */
export async function listTagged(session: ProviderSession, call: ResourceCall): Promise<readonly Resource[]> {
  const lists = await Promise.all([
    servers(call),
    images(session, call),
    floatingIps(session, call),
    volumes(session, call),
  ]);
  return lists.flat();
}

/** Deletes a resource. Succeeds if the resource does not exist. */
export async function deleteResource(
  { client }: ProviderSession,
  { kind, externalId }: Resource,
  call: Call,
): Promise<void> {
  const id = idOf(externalId);
  try {
    if (kind === 'image') await client.image.deleteImage(id, call);
    else if (kind === 'floating-ip') await client.network.deleteFloatingIp(id, call);
    else if (kind === 'volume') await client.volume.deleteVolume(id, call);
    else await client.compute.deleteServer(id, call);
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}

async function servers(call: ResourceCall): Promise<readonly Resource[]> {
  const listed = await call.listInstances();
  return listed.flatMap(({ externalId, hostname = '', tags }) => tagged('instance', idOf(externalId), hostname, tags));
}

async function images({ client }: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const listed = await client.image.listOwnImages(call);
  return listed.filter(isOriginal).flatMap(({ id, name, properties }) => tagged('image', id, name, properties));
}

async function floatingIps({ client }: ProviderSession, call: Call): Promise<readonly Resource[]> {
  if (!client.cloud.floatingIps || !(await client.has('network'))) return [];
  const listed = await client.network.listFloatingIps(call);
  return listed.flatMap(({ id, address, description }) => tagged('floating-ip', id, address, tagsIn(description)));
}

async function volumes({ client }: ProviderSession, call: Call): Promise<readonly Resource[]> {
  if (!(await client.has('volume'))) return [];
  const listed = await client.volume.listVolumes(call);
  const own = listed.filter(({ id, status, metadata }) => UNATTACHED.has(status) && metadata[VOLUME_ID] === id);
  return own.flatMap(({ id, name, metadata }) => tagged('volume', id, name, metadata));
}

function tagged(
  kind: string,
  externalId: string,
  name: string,
  tags: Readonly<Record<string, string>>,
): readonly Resource[] {
  return 'nodepool_provider_name' in tags ? [{ kind, externalId, name: name === '' ? externalId : name, tags }] : [];
}

/** Returns the external id as a string, the only type of ids in this cloud. */
export function idOf(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
}
