/** Our tags on resources that have no metadata: in their description. */

/** Names of the tags of an instance. The last ones are left out if names of pools and providers are too long for all of them. */
const TAGS = [
  'nodepool_node_id',
  'nodepool_provider_name',
  'nodepool_installation',
  'nodepool_launch_attempt',
  'nodepool_pool_name',
] as const;

/** Longest description (neutron). */
const MAX_LENGTH = 255;

/** e.g. `nodepool_node_id=0000000001 nodepool_launch_attempt=…`; values are encoded as in URLs. */
export function describeTags(tags: Readonly<Record<string, string>>): string {
  const words = TAGS.flatMap((tag) => (tags[tag] === undefined ? [] : [`${tag}=${encodeURIComponent(tags[tag])}`]));
  while (words.join(' ').length > MAX_LENGTH) words.pop();
  return words.join(' ');
}

/** Returns the tags in a description; none if Nodepool did not write it. */
export function tagsIn(description: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const word of description.split(' ')) {
    const [name, value, ...rest] = word.split('=');
    const tag = TAGS.find((known) => known === name);
    if (tag === undefined || value === undefined || rest.length > 0) continue;
    try {
      found[tag] = decodeURIComponent(value);
    } catch {
      // Not of ours: we encode so that it can be decoded.
      continue;
    }
  }
  return found;
}
