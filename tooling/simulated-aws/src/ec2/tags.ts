/** Tags of EC2's resources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html. */

import type { Tag, TagSpecification } from '@aws-sdk/client-ec2';
import { AwsError, invalidValue, missing } from '../protocol/aws-error.js';

const MAX_TAGS = 50;
const MAX_KEY = 128;
const MAX_VALUE = 256;

/** Returns the checked tags. Throws for reserved, too long, empty and duplicate keys. */
export function checkTags(tags: readonly Tag[]): Map<string, string> {
  const checked = new Map<string, string>();
  for (const { Key: key, Value: value = '' } of tags) {
    if (key === undefined || key === '') throw missing('Tag.Key');
    if (/^aws:/i.test(key)) {
      throw invalidValue(`Tag keys starting with 'aws:' are reserved for internal use`);
    }
    if (key.length > MAX_KEY) {
      throw invalidValue(`Tag key exceeds the maximum length of ${MAX_KEY} characters: '${key}'`);
    }
    if (value.length > MAX_VALUE) {
      throw invalidValue(`Tag value exceeds the maximum length of ${MAX_VALUE} characters: '${value}'`);
    }
    if (checked.has(key)) throw invalidValue(`Duplicate tag key '${key}' specified.`);
    checked.set(key, value);
  }
  if (checked.size > MAX_TAGS) throw tooManyTags();
  return checked;
}

function tooManyTags(): AwsError {
  return new AwsError('TagLimitExceeded', `More than ${MAX_TAGS} tags specified`);
}

/** Adds tags to those of a resource; the tags of AWS itself do not count. Throws if there are too many. */
export function addTags(existing: Map<string, string>, added: ReadonlyMap<string, string>): void {
  const own = new Set([...existing.keys(), ...added.keys()].filter((key) => !key.startsWith('aws:')));
  if (own.size > MAX_TAGS) throw tooManyTags();
  for (const [key, value] of added) existing.set(key, value);
}

/** Returns the tags by type of resource. Throws for a type that the operation does not create. */
export function tagsByType(
  specifications: readonly TagSpecification[] | undefined,
  allowed: readonly string[],
): ReadonlyMap<string, Map<string, string>> {
  const byType = new Map<string, Map<string, string>>();
  for (const { ResourceType: type, Tags: tags } of specifications ?? []) {
    if (type === undefined) throw missing('TagSpecification.ResourceType');
    if (!allowed.includes(type)) {
      throw invalidValue(`'${type}' is not a valid taggable resource type for this operation.`);
    }
    if (tags === undefined || tags.length === 0) {
      throw invalidValue(`Tag specification must have at least one tag`);
    }
    if (byType.has(type)) {
      throw invalidValue(`Tag specifications with duplicate resource type '${type}' are not allowed.`);
    }
    byType.set(type, checkTags(tags));
  }
  return byType;
}

export function shownTags(tags: ReadonlyMap<string, string>): Tag[] | undefined {
  return tags.size === 0 ? undefined : [...tags].map(([Key, Value]) => ({ Key, Value }));
}
