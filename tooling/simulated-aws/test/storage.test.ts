/** Objects: uploads, lists, tags, checksums. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  S3Client,
  UploadPartCommand,
  type ChecksumAlgorithm,
} from '@aws-sdk/client-s3';
import { BUCKET } from '../src/index.js';
import { codeOf, Fixture } from './support/fixture.js';

const PART = 5 * 2 ** 20;
let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start();
});

afterEach(() => aws.close());

function put(Key: string, Body: string | Buffer | Readable = 'x', more: object = {}): Promise<unknown> {
  return aws.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body, ...more }));
}

describe('an object', () => {
  it.each(['plain', 'with space', 'plus+and&amp', 'ümläut/path', 'a//b', "quote'(x)!*"])(
    'has the key %s',
    async (Key) => {
      await put(Key, 'content', { Metadata: { by: 'test' }, Tagging: 'a=b&c=d' });
      const read = await aws.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key }));
      expect(await read.Body?.transformToString()).toBe('content');
      expect(read).toMatchObject({ ContentLength: 7, Metadata: { by: 'test' }, TagCount: 2 });
      const { Contents } = await aws.s3.send(new ListObjectsV2Command({ Bucket: BUCKET }));
      expect(Contents?.map((one) => one.Key)).toEqual([Key]);
      expect(aws.cloud.inspect.objects()).toMatchObject([{ key: Key, size: 7, tags: { a: 'b', c: 'd' } }]);
    },
  );

  it('is read from a stream, in chunks with a checksum behind them', async () => {
    const content = Buffer.alloc(300_000, 'chunk');
    const pieces = [content.subarray(0, 100_000), content.subarray(100_000)];
    await put('a', Readable.from(pieces), { ContentLength: content.length, ChecksumAlgorithm: 'CRC32' });
    const hash = createHash('sha256').update(content).digest('hex');
    expect(aws.cloud.inspect.objects()).toMatchObject([{ size: content.length, sha256: hash }]);
  });

  it('is read in ranges, and described without content', async () => {
    await put('a', '0123456789');
    const read = await aws.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'a', Range: 'bytes=2-4' }));
    expect([await read.Body?.transformToString(), read.ContentRange]).toEqual(['234', 'bytes 2-4/10']);
    const head = await aws.s3.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'a' }));
    expect(head.ContentLength).toBe(10);
    expect(await codeOf(aws.s3.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'b' })))).toBe('NotFound');
    expect(await codeOf(aws.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'b' })))).toBe('NoSuchKey');
  });

  it.each(['CRC32', 'CRC32C', 'SHA1', 'SHA256'] as const)('has a verified checksum %s', async (algorithm) => {
    await put('a', 'hello', { ChecksumAlgorithm: algorithm satisfies ChecksumAlgorithm });
    const wrong = { [`Checksum${algorithm}`]: Buffer.alloc(algorithm.startsWith('CRC') ? 4 : 32).toString('base64') };
    expect(await codeOf(put('b', 'hello', wrong))).toBe('BadDigest');
    expect(aws.cloud.inspect.objects()).toHaveLength(1);
  });

  it('has at most ten tags', async () => {
    await put('a');
    const tag = (count: number, prefix = 'key'): Promise<string> => {
      const TagSet = Array.from({ length: count }, (_, index) => ({ Key: `${prefix}${index}`, Value: 'v' }));
      return codeOf(aws.s3.send(new PutObjectTaggingCommand({ Bucket: BUCKET, Key: 'a', Tagging: { TagSet } })));
    };
    expect(await tag(11)).toBe('BadRequest');
    expect(await tag(1, 'aws:')).toBe('InvalidTag');
    expect(await tag(1, 'a&b')).toBe('InvalidTag');
    expect(await tag(10)).toBe('accepted');
    const { TagSet } = await aws.s3.send(new GetObjectTaggingCommand({ Bucket: BUCKET, Key: 'a' }));
    expect(TagSet).toHaveLength(10);
  });

  it('is not created over another one if the call says so', async () => {
    await put('a');
    expect(await codeOf(put('a', 'y', { IfNoneMatch: '*' }))).toBe('PreconditionFailed');
  });
});

describe('a bucket', () => {
  it('is listed in pages, with prefixes, in the order of bytes', async () => {
    for (const key of ['b/2', 'a', 'b/1', 'c', 'b/d/3', 'Z']) await put(key);
    const list = async (input: object): Promise<unknown[]> => {
      const pages: unknown[] = [];
      let ContinuationToken: string | undefined;
      do {
        const page = await aws.s3.send(new ListObjectsV2Command({ Bucket: BUCKET, ContinuationToken, ...input }));
        pages.push([
          ...(page.Contents ?? []).map(({ Key }) => Key),
          ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix),
        ]);
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
      return pages;
    };
    expect(await list({ MaxKeys: 4 })).toEqual([
      ['Z', 'a', 'b/1', 'b/2'],
      ['b/d/3', 'c'],
    ]);
    expect(await list({ Delimiter: '/', MaxKeys: 3 })).toEqual([['Z', 'a', 'b/'], ['c']]);
    expect(await list({ Prefix: 'b/', Delimiter: '/' })).toEqual([['b/1', 'b/2', 'b/d/']]);
    expect(await list({ StartAfter: 'b/2' })).toEqual([['b/d/3', 'c']]);
  });

  it('belongs to its region', async () => {
    const west = new S3Client(aws.config('us-west-2'));
    const list = new ListObjectsV2Command({ Bucket: BUCKET });
    expect(await codeOf(west.send(list))).toBe('AuthorizationHeaderMalformed');
    const CreateBucketConfiguration = { LocationConstraint: 'us-west-2' } as const;
    await west.send(new CreateBucketCommand({ Bucket: 'acme-west', CreateBucketConfiguration }));
    const location = await west.send(new GetBucketLocationCommand({ Bucket: 'acme-west' }));
    expect(location.LocationConstraint).toBe('us-west-2');
    west.destroy();
    expect(await codeOf(aws.s3.send(new HeadBucketCommand({ Bucket: 'absent' })))).toBe('NotFound');
    await put('a');
    expect(await codeOf(aws.s3.send(new DeleteBucketCommand({ Bucket: BUCKET })))).toBe('BucketNotEmpty');
  });

  it('deletes many objects at once', async () => {
    for (const key of ['a', 'b', 'c']) await put(key);
    const Objects = [{ Key: 'a' }, { Key: 'b' }, { Key: 'absent' }];
    const { Deleted } = await aws.s3.send(new DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects } }));
    expect(Deleted).toHaveLength(3);
    expect(aws.cloud.inspect.objects().map(({ key }) => key)).toEqual(['c']);
  });
});

describe('an upload in parts', () => {
  const target = { Bucket: BUCKET, Key: 'disk' };

  const begin = async (): Promise<string | undefined> =>
    (await aws.s3.send(new CreateMultipartUploadCommand({ ...target, Tagging: 'a=b' }))).UploadId;
  const part = async (UploadId: string | undefined, PartNumber: number, Body: Buffer): Promise<string | undefined> =>
    (await aws.s3.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body }))).ETag;

  it('makes an object of the named parts', async () => {
    const id = await begin();
    const [one, two] = [Buffer.alloc(PART, '1'), Buffer.alloc(10, '2')];
    const last = await part(id, 3, two);
    const first = await part(id, 1, one);
    await part(id, 2, two);
    const list = new ListPartsCommand({ ...target, UploadId: id, MaxParts: 2 });
    expect(await aws.s3.send(list)).toMatchObject({ IsTruncated: true, Parts: [{ PartNumber: 1 }, { PartNumber: 2 }] });
    const Parts = [
      { PartNumber: 1, ETag: first },
      { PartNumber: 3, ETag: last },
    ];
    const complete = (parts: typeof Parts): Promise<unknown> =>
      aws.s3.send(new CompleteMultipartUploadCommand({ ...target, UploadId: id, MultipartUpload: { Parts: parts } }));
    expect(await codeOf(complete([...Parts].reverse()))).toBe('InvalidPartOrder');
    expect(await codeOf(complete([{ PartNumber: 1, ETag: last }]))).toBe('InvalidPart');
    expect(await codeOf(complete([{ PartNumber: 2, ETag: last }, ...Parts.slice(1)]))).toBe('EntityTooSmall');
    await complete(Parts);
    const hash = createHash('sha256').update(one).update(two).digest('hex');
    expect(aws.cloud.inspect.objects()).toMatchObject([{ size: PART + 10, sha256: hash, tags: { a: 'b' } }]);
    expect(aws.cloud.inspect.uploads()).toEqual([]);
    expect(await codeOf(part(id, 1, two))).toBe('NoSuchUpload');
  });

  it('is listed until it is aborted', async () => {
    const id = await begin();
    await part(id, 1, Buffer.from('x'));
    const { Uploads } = await aws.s3.send(new ListMultipartUploadsCommand({ Bucket: BUCKET, Prefix: 'di' }));
    expect(Uploads).toMatchObject([{ Key: 'disk', UploadId: id }]);
    expect(aws.cloud.inspect.uploads()).toEqual([{ bucket: BUCKET, key: 'disk', uploadId: id, parts: 1 }]);
    await aws.s3.send(new AbortMultipartUploadCommand({ ...target, UploadId: id }));
    expect(aws.cloud.inspect.uploads()).toEqual([]);
  });

  it('needs no memory for contents if they are not stored', async () => {
    aws.cloud.configure({ storesContent: false });
    const id = await begin();
    const ETag = await part(id, 1, Buffer.alloc(100, 'x'));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
    await aws.s3.send(new CompleteMultipartUploadCommand({ ...target, UploadId: id, MultipartUpload }));
    expect(aws.cloud.inspect.objects()).toMatchObject([{ size: 100, sha256: undefined }]);
    expect(await codeOf(aws.s3.send(new GetObjectCommand(target)))).toBe('NotImplemented');
  });
});
