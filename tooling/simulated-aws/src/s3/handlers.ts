/** Operations of S3. */

import type {
  AbortMultipartUploadRequest,
  CompleteMultipartUploadOutput,
  CompleteMultipartUploadRequest,
  CreateBucketRequest,
  CreateMultipartUploadOutput,
  CreateMultipartUploadRequest,
  DeleteObjectsOutput,
  DeleteObjectsRequest,
  GetBucketLocationOutput,
  GetObjectRequest,
  GetObjectTaggingOutput,
  ListBucketsOutput,
  ListMultipartUploadsOutput,
  ListMultipartUploadsRequest,
  ListPartsOutput,
  ListPartsRequest,
  PutObjectRequest,
  PutObjectTaggingRequest,
  Tag,
  UploadPartRequest,
} from '@aws-sdk/client-s3';
import type { Tags } from '../api.js';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import { checkChecksums, decodeChunks } from '../protocol/checksums.js';
import { assembled, compareKeys, storedBytes, type Bucket, type StoredObject, type Upload } from './buckets.js';
import type { BucketOf, Named, S3Context } from './context.js';
import { listHandlers } from './lists.js';

const MAX_PARTS = 10_000;
const MAX_OBJECT_TAGS = 10;
const MAX_DELETED = 1000;

export function s3Handlers(context: S3Context): Handlers {
  const { buckets } = context;
  const bucketOf = (input: Named, call: AwsCall): Bucket => buckets.require(input.Bucket ?? '', call.region);
  return {
    ListBuckets: operation<object, ListBucketsOutput>(() => ({
      Buckets: buckets.all().map(({ name, createdAt }) => ({ Name: name, CreationDate: new Date(createdAt) })),
    })),
    CreateBucket: operation<CreateBucketRequest, object>((input, call) => {
      const { Bucket: name = '', CreateBucketConfiguration: configuration } = input;
      if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) {
        throw new AwsError('InvalidBucketName', 'The specified bucket is not valid.');
      }
      const location = configuration?.LocationConstraint ?? 'us-east-1';
      if (location !== call.region) {
        throw new AwsError('IllegalLocationConstraintException', `The ${location} location constraint is incompatible`);
      }
      buckets.create(name, call.region, call.now);
      return { Location: `/${name}` };
    }),
    HeadBucket: operation<Named, object>((input, call) => ({ BucketRegion: bucketOf(input, call).region })),
    DeleteBucket: operation<Named, object>((input, call) => {
      buckets.delete(bucketOf(input, call));
      return {};
    }),
    GetBucketLocation: operation<Named, GetBucketLocationOutput>((input, call) => {
      const { region } = bucketOf(input, call);
      return region === 'us-east-1' ? {} : { LocationConstraint: region as 'us-west-2' };
    }),
    ...objectHandlers(context, bucketOf),
    ...uploadHandlers(context, bucketOf),
    ...listHandlers(context, bucketOf),
  };
}

function objectHandlers({ settings }: S3Context, bucketOf: BucketOf): Handlers {
  return {
    PutObject: operation<PutObjectRequest, object>((input, call) => {
      const bucket = bucketOf(input, call);
      checkKey(input.Key);
      const body = bodyOf(call);
      const bytes = storedBytes(body, settings().storesContent);
      const etag = `"${bytes.md5.toString('hex')}"`;
      if (input.IfNoneMatch === '*' && bucket.objects.has(input.Key ?? '')) {
        throw new AwsError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
      }
      const tags = taggingOf(input.Tagging, call);
      bucket.objects.set(input.Key ?? '', {
        ...{ ...bytes, etag, modifiedAt: call.now, type: input.ContentType, metadata: input.Metadata ?? {}, tags },
      });
      return { ETag: etag };
    }),
    CopyObject: operation<Named & { readonly CopySource?: string }, object>((input, call) => {
      const bucket = bucketOf(input, call);
      const [, from = '', key = ''] = /^\/?([^/]+)\/(.+)$/s.exec(decodeURIComponent(input.CopySource ?? '')) ?? [];
      const source = requireObject(bucketOf({ Bucket: from }, call), key);
      call.authorize('s3:GetObject');
      bucket.objects.set(input.Key ?? '', { ...source, modifiedAt: call.now });
      return { CopyObjectResult: { ETag: source.etag, LastModified: new Date(call.now) } };
    }),
    GetObject: operation<GetObjectRequest, object>((input, call) => {
      const object = requireObject(bucketOf(input, call), input.Key);
      if (object.content === undefined) throw new AwsError('NotImplemented', 'The content was not stored', 501);
      const range = rangeOf(input.Range, object.size);
      const Body = range === undefined ? object.content : object.content.subarray(range.start, range.end + 1);
      const ranged = range && { ContentRange: `bytes ${range.start}-${range.end}/${object.size}` };
      return { ...shownObject(object), Body, ContentLength: Body.length, ...ranged };
    }),
    HeadObject: operation<Named, object>((input, call) => shownObject(requireObject(bucketOf(input, call), input.Key))),
    DeleteObject: operation<Named, object>((input, call) => {
      bucketOf(input, call).objects.delete(input.Key ?? '');
      return {};
    }),
    DeleteObjects: operation<DeleteObjectsRequest, DeleteObjectsOutput>((input, call) => {
      const { objects } = bucketOf(input, call);
      checkChecksums(call.body, call.headers);
      const named = input.Delete?.Objects ?? [];
      if (named.length === 0 || named.length > MAX_DELETED) {
        throw new AwsError('MalformedXML', 'The XML you provided was not well-formed');
      }
      for (const { Key: key = '' } of named) objects.delete(key);
      return input.Delete?.Quiet === true ? {} : { Deleted: named.map(({ Key }) => ({ Key })) };
    }),
    GetObjectTagging: operation<Named, GetObjectTaggingOutput>((input, call) => {
      const { tags } = requireObject(bucketOf(input, call), input.Key);
      return { TagSet: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) };
    }),
    PutObjectTagging: operation<PutObjectTaggingRequest, object>((input, call) => {
      const object = requireObject(bucketOf(input, call), input.Key);
      object.tags = checkTags(input.Tagging?.TagSet ?? []);
      return {};
    }),
    DeleteObjectTagging: operation<Named, object>((input, call) => {
      requireObject(bucketOf(input, call), input.Key).tags = {};
      return {};
    }),
  };
}

function uploadHandlers({ settings, newId }: S3Context, bucketOf: BucketOf): Handlers {
  const uploadOf = (input: Named & { readonly UploadId?: string | undefined }, call: AwsCall): Upload => {
    const upload = bucketOf(input, call).uploads.get(input.UploadId ?? '');
    if (upload?.key === input.Key && upload !== undefined) return upload;
    throw new AwsError('NoSuchUpload', 'The specified upload does not exist.', 404);
  };
  return {
    CreateMultipartUpload: operation<CreateMultipartUploadRequest, CreateMultipartUploadOutput>((input, call) => {
      const bucket = bucketOf(input, call);
      checkKey(input.Key);
      const { Key: key = '', ContentType: type, Metadata: metadata = {} } = input;
      const id = newId();
      const tags = taggingOf(input.Tagging, call);
      bucket.uploads.set(id, { id, key, startedAt: call.now, type, metadata, tags, parts: new Map() });
      const { ChecksumAlgorithm, ChecksumType } = input;
      return { Bucket: bucket.name, Key: key, UploadId: id, ChecksumAlgorithm, ChecksumType };
    }),
    UploadPart: operation<UploadPartRequest, object>((input, call) => {
      const upload = uploadOf(input, call);
      const { PartNumber: number = 0 } = input;
      if (number < 1 || number > MAX_PARTS) {
        throw new AwsError('InvalidArgument', `Part number must be an integer between 1 and ${MAX_PARTS}, inclusive`);
      }
      const bytes = storedBytes(bodyOf(call), settings().storesContent);
      const checksums = checksumsIn(call);
      upload.parts.set(number, { ...bytes, number, modifiedAt: call.now, checksums });
      return { ETag: `"${bytes.md5.toString('hex')}"`, ...checksums };
    }),
    CompleteMultipartUpload: operation<CompleteMultipartUploadRequest, CompleteMultipartUploadOutput>((input, call) => {
      const bucket = bucketOf(input, call);
      const upload = uploadOf(input, call);
      const named = input.MultipartUpload?.Parts ?? [];
      const parts = named.map(({ PartNumber: number = 0, ETag: etag = '' }) => ({ number, etag }));
      const object = assembled(upload, parts, call.now);
      bucket.objects.set(upload.key, object);
      bucket.uploads.delete(upload.id);
      return { Location: `/${bucket.name}/${upload.key}`, Bucket: bucket.name, Key: upload.key, ETag: object.etag };
    }),
    AbortMultipartUpload: operation<AbortMultipartUploadRequest, object>((input, call) => {
      bucketOf(input, call).uploads.delete(uploadOf(input, call).id);
      return {};
    }),
    ListParts: operation<ListPartsRequest, ListPartsOutput>((input, call) => {
      const upload = uploadOf(input, call);
      const { MaxParts: size = 1000, PartNumberMarker: marker = '0' } = input;
      const all = [...upload.parts.values()].sort((a, b) => a.number - b.number);
      const rest = all.filter(({ number }) => number > Number(marker));
      const page = rest.slice(0, size);
      const isTruncated = rest.length > page.length;
      return {
        ...{ Bucket: input.Bucket, Key: upload.key, UploadId: upload.id, MaxParts: size, IsTruncated: isTruncated },
        PartNumberMarker: marker,
        ...(isTruncated ? { NextPartNumberMarker: String(page.at(-1)?.number) } : {}),
        Parts: page.map((part) => ({
          ...{ PartNumber: part.number, ETag: `"${part.md5.toString('hex')}"`, Size: part.size },
          ...part.checksums,
          LastModified: new Date(part.modifiedAt),
        })),
      };
    }),
    ListMultipartUploads: operation<ListMultipartUploadsRequest, ListMultipartUploadsOutput>((input, call) => {
      const { uploads, name } = bucketOf(input, call);
      const { Prefix = '', MaxUploads: size = 1000, KeyMarker: marker, UploadIdMarker: idMarker = '' } = input;
      const all = [...uploads.values()].filter(({ key }) => key.startsWith(Prefix));
      const sorted = all.sort((a, b) => compareKeys(a.key, b.key) || compareKeys(a.id, b.id));
      const rest = sorted.filter(
        ({ key, id }) =>
          marker === undefined || compareKeys(key, marker) > 0 || (key === marker && id > idMarker && idMarker !== ''),
      );
      const page = rest.slice(0, size);
      const last = page.at(-1);
      const IsTruncated = rest.length > page.length;
      return {
        ...{ Bucket: name, Prefix, MaxUploads: size, IsTruncated },
        ...(IsTruncated ? { NextKeyMarker: last?.key, NextUploadIdMarker: last?.id } : {}),
        Uploads: page.map(({ key, id, startedAt }) => ({ Key: key, UploadId: id, Initiated: new Date(startedAt) })),
      };
    }),
  };
}

/** Returns the decoded content of a body, after its checksums fit. */
function bodyOf({ body, headers }: AwsCall): Buffer {
  const isChunked = headers['x-amz-content-sha256']?.startsWith('STREAMING-') ?? false;
  const decoded = isChunked ? decodeChunks(body) : { body, trailers: {} };
  const declared = headers['x-amz-decoded-content-length'];
  if (declared !== undefined && Number(declared) !== decoded.body.length) {
    throw new AwsError('IncompleteBody', 'You did not provide the number of bytes specified');
  }
  checkChecksums(decoded.body, { ...headers, ...decoded.trailers });
  return decoded.body;
}

/** Returns the checksums of a part as its answer repeats them. */
function checksumsIn({ headers }: AwsCall): Readonly<Record<string, string | undefined>> {
  const names = { ChecksumCRC32: 'crc32', ChecksumCRC32C: 'crc32c', ChecksumSHA1: 'sha1', ChecksumSHA256: 'sha256' };
  return Object.fromEntries(Object.entries(names).map(([name, header]) => [name, headers[`x-amz-checksum-${header}`]]));
}

function checkKey(key = ''): void {
  if (Buffer.byteLength(key) > 1024) throw new AwsError('KeyTooLongError', 'Your key is too long');
}

function requireObject(bucket: Bucket, key = ''): StoredObject {
  const object = bucket.objects.get(key);
  if (object !== undefined) return object;
  throw new AwsError('NoSuchKey', 'The specified key does not exist.', 404, { Key: key });
}

function taggingOf(tagging: string | undefined, call: AwsCall): Tags {
  if (tagging === undefined) return {};
  call.authorize('s3:PutObjectTagging');
  return checkTags([...new URLSearchParams(tagging)].map(([Key, Value]) => ({ Key, Value })));
}

/** See https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html. */
function checkTags(tags: readonly Tag[]): Tags {
  if (tags.length > MAX_OBJECT_TAGS) throw new AwsError('BadRequest', 'Object tags cannot be greater than 10');
  for (const { Key: key = '', Value: value = '' } of tags) {
    const hasWrongCharacters = !/^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u.test(key + value);
    if (key === '' || key.length > 128 || hasWrongCharacters || key.startsWith('aws:')) {
      throw new AwsError('InvalidTag', 'The TagKey you have provided is invalid');
    }
    if (value.length > 256) throw new AwsError('InvalidTag', 'The TagValue you have provided is invalid');
  }
  const map = Object.fromEntries(tags.map(({ Key = '', Value = '' }) => [Key, Value]));
  if (Object.keys(map).length < tags.length) {
    throw new AwsError('InvalidTag', 'Cannot provide multiple Tags with the same key');
  }
  return map;
}

function shownObject({ size, etag, modifiedAt, type, metadata, tags }: StoredObject): object {
  const count = Object.keys(tags).length;
  return {
    ...{
      ContentLength: size,
      ETag: etag,
      LastModified: new Date(modifiedAt),
      AcceptRanges: 'bytes',
      Metadata: metadata,
    },
    ContentType: type ?? 'binary/octet-stream',
    ...(count === 0 ? {} : { TagCount: count }),
  };
}

function rangeOf(
  range: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(size - 1, Number(last));
  if (start > end) throw new AwsError('InvalidRange', 'The requested range is not satisfiable', 416);
  return { start, end };
}
