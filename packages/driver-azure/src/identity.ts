/** Names and tags: what tells whose a resource is. */

import type { InstanceTags } from '@nodepool/core';

/** Longest name of a VM that all operating systems take as their own is shorter: `computerName` is the host's name. */
const MAX_NAME = 64;

/**
 * Name of the VM of a launch attempt. It has the whole attempt in it, so that the VM of an attempt whose outcome is unknown can
 * be asked for by its name, and no two attempts meet in one VM.
 */
export function vmNameOf(hostname: string, { nodepool_launch_attempt: attempt }: InstanceTags): string {
  const host = hostname.replace(/[^A-Za-z0-9-]/g, '-').slice(0, MAX_NAME - attempt.length - 1);
  return `${host}-${attempt}`;
}

/** The last part of a resource id, which is the resource's name. */
export function nameIn(id: string | undefined): string | undefined {
  const name = id?.split('/').at(-1);
  return name === '' ? undefined : name;
}

/** Name of the resource group in a resource id; Azure does not care for its case, and changes it at times. */
export function groupIn(id: string | undefined): string | undefined {
  return /\/resourceGroups\/([^/]+)\//i.exec(id ?? '')?.[1]?.toLowerCase();
}

/** Locations are written `centralus` and `Central US`. */
export function sameLocation(a: string | undefined, b: string): boolean {
  const plain = (location: string): string => location.replaceAll(' ', '').toLowerCase();
  return a !== undefined && plain(a) === plain(b);
}

/** Tags, of which Azure's libraries say that they may be missing. */
export function tagsOf(resource: { readonly tags?: Record<string, string> }): Readonly<Record<string, string>> {
  return resource.tags ?? {};
}
