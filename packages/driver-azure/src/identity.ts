/** Names and tags that identify the owner of a resource. */

import type { InstanceTags } from '@nodepool/core';

export interface NamedResource {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly tags?: Record<string, string>;
}

/** Maximum length of a VM name. `computerName`, the hostname, has a lower limit on some operating systems. */
const MAX_NAME = 64;

/**
 * Returns the VM name of a launch attempt. It contains the whole attempt id, so that the VM of an unknown outcome can
 * be read by name and two attempts never share a VM.
 */
export function vmNameOf(hostname: string, { nodepool_launch_attempt: attempt }: InstanceTags): string {
  const host = hostname.replace(/[^A-Za-z0-9-]/g, '-').slice(0, MAX_NAME - attempt.length - 1);
  return `${host}-${attempt}`;
}

/** Returns the resource's name, which is the last part of its id. */
export function nameIn(id: string | undefined): string | undefined {
  const name = id?.split('/').at(-1);
  return name === '' ? undefined : name;
}

/** Returns the resource group in a resource id, in lower case. Azure ignores its case and sometimes changes it. */
export function groupIn(id: string | undefined): string | undefined {
  return /\/resourceGroups\/([^/]+)\//i.exec(id ?? '')?.[1]?.toLowerCase();
}

/**
 * Tag with the resource group and the name of the VM or image that a resource was created for. Resources that are
 * created from an exported template, restored from a backup or replicated can have the tags of the original, but each
 * has another name or group.
 */
export const OWNER_TAG = 'nodepool_resource';

/** Endings of the names of a VM's resources; empty for the VM itself, an image and the disk of its upload. */
const PARTS = ['', '-nic', '-disk', '-ipv4', '-ipv6'];

/** Returns the value of `OWNER_TAG`. Azure ignores the case of names and sometimes changes it. */
export function ownerTagOf(resourceGroup: string, name: string): string {
  return `${resourceGroup}/${name}`.toLowerCase();
}

/** Returns true if the resource is certainly a copy, whose tags are those of the original. */
export function isCopy(resource: NamedResource): boolean {
  const owner = tagsOf(resource)[OWNER_TAG];
  if (owner === undefined) return false;
  const own = ownerTagOf(groupIn(resource.id) ?? '', resource.name ?? nameIn(resource.id) ?? '');
  return !PARTS.some((part) => `${owner}${part}` === own);
}

/** Returns true if both names mean the same location: Azure writes `centralus` and `Central US`. */
export function sameLocation(a: string | undefined, b: string): boolean {
  return a !== undefined && locationName(a) === locationName(b);
}

/** Returns the name of a location, which can be configured by its display name. */
export function locationName(location: string): string {
  return location.replaceAll(' ', '').toLowerCase();
}

/** Returns the tags of a resource, which Azure's libraries declare as optional. */
export function tagsOf(resource: { readonly tags?: Record<string, string> }): Readonly<Record<string, string>> {
  return resource.tags ?? {};
}
