/** Limits of tags in EC2 (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html). */

import { textsAt, type JsonObject } from '@nodepool/core';

/** Maximum number of tags of a resource. */
export const TAGS_MAX = 50;
/** Maximum length of a tag's name in characters. */
const NAME_MAX = 128;
/** Maximum length of a tag's value in characters. */
export const VALUE_MAX = 256;
/**
 * Number of tags that the driver adds to an instance: those of the node, `Name`, and the token of the launch. A launch
 * of several instances uses what is left.
 */
export const OWN_INSTANCE_TAGS = 9;
/**
 * Number of tags that the driver adds to an image or its snapshot: the six of its identity, `Name`, the names of the
 * builder and of EC2, the id of the snapshot, and its written blocks.
 */
const OWN_IMAGE_TAGS = 11;

type Problem = (key: readonly string[], expected: string, hint?: string) => void;

/** Returns the tags of a label after it has checked them and the names of its dynamic tags. */
export function checkUserTags(section: JsonObject, problem: Problem): Readonly<Record<string, string>> {
  const tags = textsAt(section, 'tags');
  const dynamic = Object.keys(textsAt(section, 'dynamic-tags'));
  for (const [name, value] of Object.entries(tags)) checkTag(name, value, ['tags', name], problem);
  for (const name of dynamic) checkTag(name, '', ['dynamic-tags', name], problem);
  const key = 'tags' in section ? 'tags' : 'dynamic-tags';
  checkNumber(new Set([...Object.keys(tags), ...dynamic]).size, OWN_INSTANCE_TAGS, [key], problem);
  return tags;
}

/** Checks the tags of a disk image, which can also be properties of the image that is built. */
export function checkImageTags(
  own: Readonly<Record<string, string>>,
  all: Readonly<Record<string, string>>,
  problem: Problem,
): void {
  for (const [name, value] of Object.entries(all)) {
    if (name in own) checkTag(name, value, ['tags', name], problem);
    else checkTag(name, value, [], (key, expected) => problem(key, expected, `this is about the tag ${name}`));
  }
  checkNumber(Object.keys(all).length, OWN_IMAGE_TAGS, [], problem);
}

/** Truncates a value to the limits of tags, so that data of a request cannot make a launch fail. */
export function asTagValue(value: string): string {
  return value.slice(0, VALUE_MAX);
}

function checkTag(name: string, value: string, key: readonly string[], problem: Problem): void {
  if (/^aws:/i.test(name)) problem(key, 'a name of a tag that does not begin with "aws:", which AWS reserves');
  if (name.length > NAME_MAX) problem(key, `a name of a tag with at most ${NAME_MAX} characters`);
  if (value.length > VALUE_MAX) problem(key, `a value of a tag with at most ${VALUE_MAX} characters`);
}

function checkNumber(tags: number, own: number, key: readonly string[], problem: Problem): void {
  const allowed = TAGS_MAX - own;
  if (tags > allowed) problem(key, `at most ${allowed} tags, because AWS allows ${TAGS_MAX} including Nodepool's`);
}
