/** Names and tags that identify the owner of a resource. */

import type { InstanceTags } from '@nodepool/core';

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

/**
 * Returns the name of the resource group in a resource id, in lower case. Azure ignores its case and sometimes changes
 * it.
 */
export function groupIn(id: string | undefined): string | undefined {
  return /\/resourceGroups\/([^/]+)\//i.exec(id ?? '')?.[1]?.toLowerCase();
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
