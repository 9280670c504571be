/** Key pairs, and operations on the tags of any resource. */

import { createHash } from 'node:crypto';
import type {
  CreateTagsRequest,
  DeleteKeyPairRequest,
  DeleteTagsRequest,
  DescribeKeyPairsRequest,
  DescribeKeyPairsResult,
  DescribeTagsRequest,
  DescribeTagsResult,
  ImportKeyPairRequest,
  ImportKeyPairResult,
  ResourceType,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidValue, missing } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { isVisible } from './image-access.js';
import { filtered, filteredBy, pageOfConstant, type Filterable } from './lists.js';
import type { Image, KeyPair } from './records.js';
import { KINDS, type Resource } from './table.js';
import { addTags, checkTags, shownTags, tagsByType } from './tags.js';

/** Maximum number of resources that a call can tag. */
const MAX_TAGGED = 1000;

const KEY_FILTERS: Filterable<KeyPair> = {
  ...{ 'key-name': ({ name }) => name, 'key-pair-id': ({ id }) => id, fingerprint: ({ fingerprint }) => fingerprint },
};

export function keyHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    DescribeKeyPairs: operation<DescribeKeyPairsRequest, DescribeKeyPairsResult>((input, call) => {
      const seen = regionOf(call).keyPairs.seen(call.asOf);
      const absent = input.KeyNames?.find((name) => !seen.some((key) => key.name === name));
      if (absent !== undefined) {
        throw new AwsError('InvalidKeyPair.NotFound', `The key pair '${absent}' does not exist`);
      }
      const named = seen.filter(
        ({ name, id }) => input.KeyNames?.includes(name) ?? input.KeyPairIds?.includes(id) ?? true,
      );
      const KeyPairs = filtered(named, input.Filters, KEY_FILTERS).map(
        ({ id, name, type, fingerprint, tags, createdAt }) => ({
          ...{ KeyPairId: id, KeyName: name, KeyType: type as 'rsa' | 'ed25519', KeyFingerprint: fingerprint },
          ...{ Tags: shownTags(tags), CreateTime: new Date(createdAt) },
        }),
      );
      return { KeyPairs };
    }),
    ImportKeyPair: operation<ImportKeyPairRequest, ImportKeyPairResult>((input, call) => {
      const region = regionOf(call);
      const tags = tagsByType(input.TagSpecifications, ['key-pair']).get('key-pair');
      if (tags !== undefined) call.authorize('ec2:CreateTags');
      const { KeyName: name = '', PublicKeyMaterial: material } = input;
      const text = Buffer.from(material ?? []).toString('latin1');
      const type = /^ssh-(rsa|ed25519) [A-Za-z0-9+/=]+/.exec(text)?.[1];
      if (type === undefined) throw new AwsError('InvalidKey.Format', 'Key is not in valid OpenSSH public key format');
      if (region.keyPairs.all().some((key) => key.name === name)) {
        throw new AwsError('InvalidKeyPair.Duplicate', `The keypair already exists`);
      }
      const hash = createHash('md5').update(text).digest('hex');
      const fingerprint = hash.replaceAll(/(..)(?!$)/g, '$1:');
      const key = region.keyPairs.add({ ...region.newResource(KINDS.keyPair, tags), name, type, fingerprint });
      return { KeyName: name, KeyPairId: key.id, KeyFingerprint: fingerprint, Tags: shownTags(key.tags) };
    }),
    DeleteKeyPair: operation<DeleteKeyPairRequest, object>((input, call) => {
      const region = regionOf(call);
      const key = region.keyPairs.all().find(({ name, id }) => name === input.KeyName || id === input.KeyPairId);
      if (key !== undefined) region.keyPairs.remove(key, call.now);
      return { Return: true, KeyPairId: key?.id };
    }),
    CreateTags: operation<CreateTagsRequest, object>((input, call) => {
      const added = checkTags(input.Tags ?? []);
      if (added.size === 0) throw missing('Tag');
      const resources = taggable(regionOf(call), input.Resources ?? [], call);
      for (const { tags } of resources) addTags(new Map(tags), added);
      for (const { tags } of resources) addTags(tags, added);
      return {};
    }),
    DeleteTags: operation<DeleteTagsRequest, object>((input, call) => {
      for (const { tags } of taggable(regionOf(call), input.Resources ?? [], call)) {
        const named = input.Tags ?? [...tags.keys()].map((Key) => ({ Key, Value: undefined }));
        for (const { Key: key = '', Value: value } of named) {
          if (/^aws:/i.test(key) && input.Tags !== undefined)
            throw invalidValue(`Tag keys starting with 'aws:' are reserved`);
          const isMeant = value === undefined || tags.get(key) === value;
          if (isMeant && !key.startsWith('aws:')) tags.delete(key);
        }
      }
      return {};
    }),
    DescribeTags: operation<DescribeTagsRequest, DescribeTagsResult>((input, call) => {
      const region = regionOf(call);
      const all = region.tables.flatMap((table) =>
        table
          .seen(call.asOf)
          .filter(isOurs)
          .flatMap(({ id, tags }) => [...tags].map(([key, value]) => ({ id, type: table.kind.type, key, value }))),
      );
      const found = filteredBy(all, input.Filters, {
        ...{ key: ({ key }) => key, value: ({ value }) => value, 'resource-id': ({ id }) => id },
        'resource-type': ({ type }) => type,
      });
      const { items, NextToken } = pageOfConstant(found, input, region.settings.pageSize);
      const Tags = items.map(({ id, type, key, value }) => ({
        ...{ ResourceId: id, ResourceType: type as ResourceType, Key: key, Value: value },
      }));
      return { Tags, NextToken };
    }),
  };
}

/** Tags are visible to the account that set them. */
function isOurs(resource: Resource): boolean {
  return !('isPublic' in resource) || isVisible(resource as Image);
}

function taggable(region: Region, ids: readonly string[], { asOf }: AwsCall): readonly Resource[] {
  if (ids.length > MAX_TAGGED) throw invalidValue(`At most ${MAX_TAGGED} resources can be tagged`);
  return ids.map((id) => {
    const table = region.tableOf(id);
    if (table === undefined) throw new AwsError('InvalidID', `The ID '${id}' is not valid`);
    return table.one(id, asOf);
  });
}
