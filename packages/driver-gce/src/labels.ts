/**
 * Encodes tags as Google Cloud labels, whose values have at most 63 characters of `a-z`, `0-9`, `_` and `-`
 * (https://cloud.google.com/compute/docs/labeling-resources). Other characters and `_` itself become `_` and two hex
 * digits per UTF-8 byte: `North 1` is `_4eorth_201`. Every driver version can decode that.
 */

export const LABEL_MAX_LENGTH = 63;

const VALID = /^[a-z0-9_-]{0,63}$/;
const ESCAPED = /_([0-9a-f]{2})/g;

/** Encodes a value. The result may exceed the length of a label; see `fitsLabel`. */
export function toLabel(value: string): string {
  let encoded = '';
  for (const byte of Buffer.from(value)) {
    const character = String.fromCharCode(byte);
    encoded += /[a-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, '0')}`;
  }
  return encoded;
}

export function fitsLabel(value: string): boolean {
  return toLabel(value).length <= LABEL_MAX_LENGTH;
}

/** Returns an operator's property as a label. Valid values stay: they are never decoded, but searched for. */
export function propertyLabel(value: string): string {
  return VALID.test(value) ? value : toLabel(value);
}

/** Decodes the result of `toLabel`. Text in another format is returned unchanged. */
export function fromLabel(label: string): string {
  const plain = label.replace(ESCAPED, '');
  if (plain.includes('_')) return label;
  const bytes: number[] = [];
  for (const [piece, hex] of label.matchAll(/_([0-9a-f]{2})|[^_]/gu)) {
    if (hex === undefined) bytes.push(...Buffer.from(piece));
    else bytes.push(Number.parseInt(hex, 16));
  }
  return Buffer.from(bytes).toString('utf8');
}

/**
 * Tag with the resource's own name. Instances that are created from a machine image or a template of an instance have
 * its labels and metadata, and copied objects have the metadata of the original, but each has another name.
 */
export const OWN_NAME = 'nodepool_name';

/** Returns true if the resource is certainly a copy, whose tags are those of the original. */
export function isCopy(tags: Readonly<Record<string, string>>, name: string): boolean {
  return tags[OWN_NAME] !== undefined && tags[OWN_NAME] !== name;
}

export function tagsToLabels(tags: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(tags).map(([tag, value]) => [tag, toLabel(value)]));
}

/** Decodes the tags among labels and omits foreign labels. */
export function tagsInLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const ours = Object.entries(labels).filter(([key]) => key.startsWith('nodepool_'));
  return Object.fromEntries(ours.map(([key, value]) => [key, fromLabel(value)]));
}
