/** Encodes tags in the description of resources that have no metadata. */

/** Tag names of an instance. The last ones are omitted if long provider and pool names leave no room for them. */
const TAGS = [
  'nodepool_node_id',
  'nodepool_provider_name',
  'nodepool_installation',
  'nodepool_launch_attempt',
  'nodepool_pool_name',
] as const;

/**
 * Entry in a volume's metadata with the volume's own id. A volume that is restored from a backup, and one that the
 * cloud creates to move a volume, have the metadata of the original and another id.
 */
export const VOLUME_ID = 'nodepool_volume_id';

/** Maximum length of a description in characters (neutron). */
const MAX_LENGTH = 255;

/**
 * Characters of values that are URL-encoded: separators, and those outside the Basic Multilingual Plane, which some
 * databases refuse. All others remain as they are, since the length of descriptions is limited.
 */
const ENCODED = /[\s=%\u{10000}-\u{10ffff}]/gu;

/** Returns e.g. `nodepool_node_id=0000000001 nodepool_launch_attempt=…`. */
export function describeTags(tags: Readonly<Record<string, string>>): string {
  const words = TAGS.flatMap((tag) => (tags[tag] === undefined ? [] : [`${tag}=${encoded(tags[tag])}`]));
  while (words.join(' ').length > MAX_LENGTH) words.pop();
  return words.join(' ');
}

function encoded(value: string): string {
  return value.replace(ENCODED, (character) => encodeURIComponent(character));
}

/** Returns the tags in a description, or no tags if Nodepool did not write it. */
export function tagsIn(description: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const word of description.split(' ')) {
    const [name, value, ...rest] = word.split('=');
    const tag = TAGS.find((known) => known === name);
    if (tag === undefined || value === undefined || rest.length > 0) continue;
    try {
      found[tag] = decodeURIComponent(value);
    } catch {
      // Tags that Nodepool writes can always be decoded, so this one is foreign.
      continue;
    }
  }
  return found;
}
