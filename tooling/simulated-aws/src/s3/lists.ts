/** Lists of objects. */

import type {
  ListObjectsOutput,
  ListObjectsRequest,
  ListObjectsV2Output,
  ListObjectsV2Request,
} from '@aws-sdk/client-s3';
import { operation, type Handlers } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import { compareKeys, type Bucket, type StoredObject } from './buckets.js';
import type { BucketOf, S3Context } from './context.js';

interface Listed {
  readonly contents: readonly (readonly [key: string, object: StoredObject])[];
  readonly prefixes: readonly string[];
  /** Last key or prefix of a page that others follow. */
  readonly next: string | undefined;
}

export function listHandlers({ settings }: S3Context, bucketOf: BucketOf): Handlers {
  return {
    ListObjectsV2: operation<ListObjectsV2Request, ListObjectsV2Output>((input, call) => {
      const { ContinuationToken: token, StartAfter: startAfter, Prefix = '', Delimiter, EncodingType } = input;
      const size = Math.min(input.MaxKeys ?? 1000, 1000, settings().pageSize);
      const after = token === undefined ? startAfter : Buffer.from(token, 'base64url').toString();
      if (token === '') throw new AwsError('InvalidArgument', 'The continuation token provided is incorrect');
      const { contents, prefixes, next } = list(bucketOf(input, call), Prefix, Delimiter, after, size);
      const encode = encoderOf(EncodingType);
      return {
        ...{ Name: input.Bucket, Prefix: encode(Prefix), MaxKeys: size, KeyCount: contents.length + prefixes.length },
        ...{
          IsTruncated: next !== undefined,
          Delimiter,
          EncodingType,
          ContinuationToken: token,
          StartAfter: startAfter,
        },
        ...(next === undefined ? {} : { NextContinuationToken: Buffer.from(next).toString('base64url') }),
        Contents: contents.map(([key, object]) => shown(encode(key), object)),
        CommonPrefixes: prefixes.map((each) => ({ Prefix: encode(each) })),
      };
    }),
    ListObjects: operation<ListObjectsRequest, ListObjectsOutput>((input, call) => {
      const { Marker, Prefix = '', Delimiter, EncodingType } = input;
      const size = Math.min(input.MaxKeys ?? 1000, 1000, settings().pageSize);
      const { contents, prefixes, next } = list(bucketOf(input, call), Prefix, Delimiter, Marker, size);
      const encode = encoderOf(EncodingType);
      return {
        ...{ Name: input.Bucket, Prefix: encode(Prefix), Marker, MaxKeys: size, IsTruncated: next !== undefined },
        ...{ Delimiter, EncodingType },
        ...(next === undefined || Delimiter === undefined ? {} : { NextMarker: encode(next) }),
        Contents: contents.map(([key, object]) => shown(encode(key), object)),
        CommonPrefixes: prefixes.map((each) => ({ Prefix: encode(each) })),
      };
    }),
  };
}

function list(
  bucket: Bucket,
  prefix: string,
  delimiter: string | undefined,
  after: string | undefined,
  size: number,
): Listed {
  const keys = [...bucket.objects.keys()].filter((key) => key.startsWith(prefix)).sort(compareKeys);
  const contents: [string, StoredObject][] = [];
  const prefixes: string[] = [];
  let last: string | undefined;
  for (const key of keys) {
    const end = delimiter === undefined || delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    const common = end === -1 ? undefined : key.slice(0, end + (delimiter?.length ?? 0));
    const shownName = common ?? key;
    if (common !== undefined && common === prefixes.at(-1)) continue;
    if (after !== undefined && compareKeys(shownName, after) <= 0) continue;
    if (contents.length + prefixes.length === size) return { contents, prefixes, next: last };
    const object = bucket.objects.get(key);
    if (common !== undefined) prefixes.push(common);
    else if (object !== undefined) contents.push([key, object]);
    last = shownName;
  }
  return { contents, prefixes, next: undefined };
}

function encoderOf(type: string | undefined): (text: string) => string {
  return type === 'url' ? (text) => encodeURIComponent(text).replaceAll('%2F', '/') : (text) => text;
}

function shown(
  Key: string,
  { size, etag, modifiedAt }: StoredObject,
): NonNullable<ListObjectsV2Output['Contents']>[number] {
  return { Key, Size: size, ETag: etag, LastModified: new Date(modifiedAt), StorageClass: 'STANDARD' };
}
