/** Buckets with their objects and multipart uploads. */

import { createHash } from 'node:crypto';
import type { InspectedObject, InspectedUpload, Tags } from '../api.js';
import { AwsError } from '../protocol/aws-error.js';
import { sha256 } from '../protocol/signature.js';
import { BUCKET, REGION } from '../settings.js';

/** Bytes as they are stored: with their content, or only their size and hashes. */
export interface StoredBytes {
  readonly size: number;
  readonly md5: Buffer;
  readonly sha256: string | undefined;
  readonly content: Buffer | undefined;
}

export interface StoredObject extends StoredBytes {
  readonly etag: string;
  readonly modifiedAt: number;
  readonly type: string | undefined;
  readonly metadata: Tags;
  tags: Tags;
}

export interface Part extends StoredBytes {
  readonly number: number;
  readonly modifiedAt: number;
  /** Checksums by the names of their fields in answers. */
  readonly checksums: Readonly<Record<string, string | undefined>>;
}

export interface Upload {
  readonly id: string;
  readonly key: string;
  readonly startedAt: number;
  readonly type: string | undefined;
  readonly metadata: Tags;
  readonly tags: Tags;
  readonly parts: Map<number, Part>;
}

export interface Bucket {
  readonly name: string;
  readonly region: string;
  readonly createdAt: number;
  readonly objects: Map<string, StoredObject>;
  readonly uploads: Map<string, Upload>;
}

/** A disk that an import reads. */
export interface DiskSource {
  readonly size: number;
  /** Returns true if the content has the format; content that was not stored has every format. */
  fits(format: string): boolean;
  /** SHA-256 of the content without trailing zeros; undefined if the content was not stored. */
  sha256(): string | undefined;
}

/** Minimum size of all parts but the last one in bytes. */
const MIN_PART_BYTES = 5 * 2 ** 20;

export class Buckets {
  private readonly buckets = new Map<string, Bucket>();

  constructor() {
    this.create(BUCKET, REGION, 0);
  }

  create(name: string, region: string, createdAt: number): void {
    if (this.buckets.has(name)) {
      throw new AwsError('BucketAlreadyOwnedByYou', 'Your previous request to create the named bucket succeeded', 409);
    }
    this.buckets.set(name, { name, region, createdAt, objects: new Map(), uploads: new Map() });
  }

  /** Returns a bucket of a region. Throws if there is none. */
  require(name: string, region: string): Bucket {
    const bucket = this.buckets.get(name);
    if (bucket === undefined) {
      throw new AwsError('NoSuchBucket', 'The specified bucket does not exist', 404, { BucketName: name });
    }
    if (bucket.region !== region) {
      const message = `The authorization header is malformed; expecting the region '${bucket.region}'`;
      throw new AwsError('AuthorizationHeaderMalformed', message, 400, { Region: bucket.region });
    }
    return bucket;
  }

  get(name: string): Bucket | undefined {
    return this.buckets.get(name);
  }

  delete(bucket: Bucket): void {
    if (bucket.objects.size > 0 || bucket.uploads.size > 0) {
      throw new AwsError('BucketNotEmpty', 'The bucket you tried to delete is not empty', 409);
    }
    this.buckets.delete(bucket.name);
  }

  all(): readonly Bucket[] {
    return [...this.buckets.values()].sort((a, b) => compareKeys(a.name, b.name));
  }

  disk(name: string, key: string): DiskSource | undefined {
    const object = this.buckets.get(name)?.objects.get(key);
    if (object === undefined) return undefined;
    const { size, content } = object;
    return {
      size,
      fits: (format) => content === undefined || hasFormat(content, format),
      sha256: () => content && sha256(withoutTrailingZeros(content)),
    };
  }

  inspectObjects(): readonly InspectedObject[] {
    return this.all().flatMap(({ name, region, objects }) =>
      [...objects].map(([key, { size, tags, sha256: hash }]) => ({
        region,
        bucket: name,
        key,
        size,
        tags,
        sha256: hash,
      })),
    );
  }

  inspectUploads(): readonly InspectedUpload[] {
    return this.all().flatMap(({ name, uploads }) =>
      [...uploads.values()].map(({ id, key, parts }) => ({ bucket: name, key, uploadId: id, parts: parts.size })),
    );
  }
}

/** Keys are in the order of their bytes in UTF-8. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function storedBytes(body: Buffer, keepsContent: boolean): StoredBytes {
  return {
    size: body.length,
    md5: createHash('md5').update(body).digest(),
    sha256: sha256(body),
    content: keepsContent ? Buffer.from(body) : undefined,
  };
}

/** Returns the object of the named parts. Throws if one is missing, differs, or is too small. */
export function assembled(
  upload: Upload,
  named: readonly { readonly number: number; readonly etag: string }[],
  modifiedAt: number,
): StoredObject {
  const parts = named.map(({ number, etag }) => {
    const part = upload.parts.get(number);
    if (part === undefined || part.md5.toString('hex') !== etag.replaceAll('"', '')) {
      throw new AwsError('InvalidPart', 'One or more of the specified parts could not be found.');
    }
    return part;
  });
  if (parts.length === 0) throw new AwsError('MalformedXML', 'The XML you provided was not well-formed');
  if (parts.some(({ number }, index) => index > 0 && number <= (parts[index - 1]?.number ?? 0))) {
    throw new AwsError('InvalidPartOrder', 'The list of parts was not in ascending order.');
  }
  if (parts.slice(0, -1).some(({ size }) => size < MIN_PART_BYTES)) {
    throw new AwsError('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size');
  }
  const md5 = createHash('md5')
    .update(Buffer.concat(parts.map((part) => part.md5)))
    .digest();
  const contents = parts.map(({ content }) => content).filter((content) => content !== undefined);
  const content = contents.length === parts.length ? Buffer.concat(contents) : undefined;
  return {
    ...{ md5, content, modifiedAt, type: upload.type, metadata: upload.metadata, tags: upload.tags },
    size: parts.reduce((sum, { size }) => sum + size, 0),
    sha256: content === undefined ? undefined : sha256(content),
    etag: `"${md5.toString('hex')}-${parts.length}"`,
  };
}

export function withoutTrailingZeros(content: Buffer): Buffer {
  let end = content.length;
  while (end > 0 && content[end - 1] === 0) end--;
  return content.subarray(0, end);
}

function hasFormat(content: Buffer, format: string): boolean {
  const startsWith = (text: string): boolean => content.subarray(0, text.length).toString('latin1') === text;
  switch (format) {
    case 'VMDK': {
      return startsWith('KDMV') || startsWith('# Disk DescriptorFile');
    }
    case 'VHDX': {
      return startsWith('vhdxfile');
    }
    case 'VHD': {
      return content.subarray(-512).subarray(0, 8).toString('latin1') === 'conectix';
    }
    case 'OVA': {
      return content.subarray(257, 262).toString('latin1') === 'ustar';
    }
    default: {
      return true;
    }
  }
}
