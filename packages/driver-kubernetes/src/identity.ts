/**
 * Names, labels and descriptions that carry the identity of a node. The label values and names of Kubernetes are
 * limited (https://kubernetes.io/docs/concepts/overview/working-with-objects/): values have at most 63 characters, and
 * names consist of `a-z`, `0-9` and `-`.
 */

import { createHash } from 'node:crypto';
import type { InstanceTags } from '@nodepool/core';

const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const MAX_NAME = 63;
/** Hexadecimal digits in names: 40 bits over the node's sequence number. */
const HASH_DIGITS = 10;

/** Tags that together identify the resource of a launch attempt. */
const IDENTITY = [
  'nodepool_installation',
  'nodepool_provider_name',
  'nodepool_pool_name',
  'nodepool_node_id',
  'nodepool_launch_attempt',
] as const satisfies readonly (keyof InstanceTags)[];

export type Tags = Readonly<Record<string, string>>;

/**
 * Label with the name of the namespace, project or pod. A namespace that a backup tool restores under another name, and
 * a pod that `kubectl debug --copy-to --keep-labels` creates, have the labels of the original and another name.
 */
export const OWN_NAME = 'nodepool_name';

/** Returns true if the object is certainly a copy, whose tags are those of the original. */
export function isCopy(tags: Tags, name: string): boolean {
  return tags[OWN_NAME] !== undefined && tags[OWN_NAME] !== name;
}

export function isLabelValue(text: string): boolean {
  return LABEL_VALUE.test(text);
}

/** Returns a valid label value that resembles the text. */
export function toLabelValue(text: string): string {
  return text
    .replace(/[^A-Za-z0-9_.-]+/g, '-')
    .slice(0, MAX_NAME)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}

/** Returns a valid name of an object that resembles the text; the text itself if that is valid. */
export function toName(text: string, maxLength = MAX_NAME): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .slice(0, maxLength)
    .replace(/^-+|-+$/g, '');
  return name === '' ? 'x' : name;
}

/**
 * Returns the name of the namespace or pod of a launch attempt: `<prefix>-<node id>-n<hash>`. It is the same for the
 * same attempt, and differs from that of every other attempt, installation and provider. The Python
 * Nodepool deletes leaked namespaces whose names end in a number; the letter before the hash prevents that.
 */
export function attemptName(prefix: string, tags: InstanceTags): string {
  const identity = JSON.stringify(IDENTITY.map((tag) => tags[tag]));
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, HASH_DIGITS);
  const end = `-${tags.nodepool_node_id}-n${hash}`;
  return `${toName(prefix, MAX_NAME - end.length)}${end}`;
}

/** Returns true if the tags have the complete identity of `wanted`. */
export function hasIdentity(tags: Tags, wanted: InstanceTags): boolean {
  return IDENTITY.every((tag) => tags[tag] === wanted[tag]);
}

export function tagsInLabels(labels: Tags): Tags {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => name.startsWith('nodepool_')));
}

/** Returns the tags as a description: the only data of a project's creator that OpenShift keeps. */
export function toDescription(tags: Tags): string {
  const words = Object.entries(tags).map(([tag, value]) => `${tag}=${encodeURIComponent(value)}`);
  return `Nodepool: ${words.join(' ')}`;
}

/** Returns the tags in a description; none if Nodepool did not write it. */
export function tagsInDescription(description: string): Tags {
  const [intro, ...words] = description.split(' ');
  if (intro !== 'Nodepool:') return {};
  const found: Record<string, string> = {};
  for (const word of words) {
    const [, tag, value] = /^(nodepool_\w+)=([^=]*)$/.exec(word) ?? [];
    if (tag === undefined || value === undefined) return {};
    try {
      found[tag] = decodeURIComponent(value);
    } catch {
      // Descriptions that Nodepool writes can always be decoded, so this one is foreign.
      return {};
    }
  }
  return found;
}
