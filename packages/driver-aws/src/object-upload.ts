/** Uploads a file to an object of S3, in parts. Its memory is bounded by the parts in progress. */

import type { Call, ImageUploadRequest } from '@nodepool/core';
import type { CompletedPart } from '@aws-sdk/client-s3';
import type { ImageCalls, S3Object } from './client/image-calls.js';
import { CheckedFile } from './checked-file.js';
import { inParallel } from './parallel.js';

const MIB = 1024 * 1024;
/** Size of a part, unless the file needs more parts than S3 allows (bytes). */
const PART_SIZE = 8 * MIB;
/** Maximum number of parts of an object (S3). */
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 4;

export interface Retries {
  <T>(work: () => Promise<T>): Promise<T>;
}

export interface ObjectUpload {
  readonly object: S3Object;
  readonly tags: Readonly<Record<string, string>>;
  readonly size: number;
  readonly upload: Pick<ImageUploadRequest, 'file' | 'progress' | 'md5' | 'sha256'>;
  readonly retries: Retries;
}

/** Resolves when the object exists. After a failure, the parts that were stored are deleted. */
export async function uploadObject(calls: ImageCalls, options: ObjectUpload, call: Call): Promise<void> {
  const { object, tags, retries } = options;
  const uploadId = await calls.beginUpload(object, new URLSearchParams(tags).toString(), call);
  try {
    const parts = await uploadParts(calls, uploadId, options, call);
    await retries(() => calls.completeUpload(object, uploadId, parts, call));
  } catch (error) {
    await calls.abortUpload(object, uploadId, call).catch((cause: unknown) => {
      call.log.warn('Could not abort a failed upload; a rule of the bucket should delete incomplete uploads', {
        key: object.Key,
        error: cause,
      });
    });
    throw error;
  }
}

async function uploadParts(
  calls: ImageCalls,
  UploadId: string,
  { object, size, upload, retries }: ObjectUpload,
  call: Call,
): Promise<CompletedPart[]> {
  const partSize = Math.max(PART_SIZE, Math.ceil(size / PARTS_MAX / MIB) * MIB);
  const parts: CompletedPart[] = [];
  let sent = 0;
  upload.progress(sent, size);
  const file = new CheckedFile(upload);
  await inParallel(file.chunks(partSize), PARTS_AT_ONCE, async ({ index, data: Body }) => {
    const part = { ...object, UploadId, PartNumber: index + 1, Body };
    parts[index] = await retries(() => calls.uploadPart(part, call));
    sent += Body.length;
    upload.progress(sent, size);
  });
  file.check();
  return parts;
}
