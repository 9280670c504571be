/**
 * Uploads a file to an object of S3, in parts. Its memory is bounded by the parts in progress. An upload of the same
 * build that was interrupted is continued: S3 lists its parts with their checksums.
 */

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { logCloudDeletion, type Call } from '@nodepool/core';
import type { CompletedPart, Part } from '@aws-sdk/client-s3';
import type { S3Object } from './client/image-calls.js';
import { CheckedFile } from './checked-file.js';
import { isSameBuild, isSameUpload, objectKey } from './image-identity.js';
import { discardingCall, leftOf, unlessGone, type Upload } from './image-upload.js';
import { inParallel } from './parallel.js';

const MIB = 1024 * 1024;
/** Size of a part, unless the file needs more parts than S3 allows (bytes). */
const PART_SIZE = 8 * MIB;
/** Maximum number of parts of an object (S3). */
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 4;

/** An upload in parts. */
interface Multipart {
  readonly id: string;
  /** By number. */
  readonly parts: ReadonlyMap<number, Part>;
}

/** Runs work with the file as an object of the bucket, which is deleted afterwards. */
export async function withObject<T>(upload: Upload, work: (object: S3Object) => Promise<T>): Promise<T> {
  const { config } = upload.session;
  const object = { Bucket: config.bucket ?? '', Key: objectKey(upload.request.tags) };
  try {
    if (!(await leftOf(upload, () => adoptObject(upload, object)))) await uploadObject(upload, object);
    return await work(object);
  } finally {
    await discardObject(upload, object);
  }
}

/** Resolves with true if the object of the build exists. Only a file that was checked becomes an object. */
async function adoptObject(upload: Upload, object: S3Object): Promise<boolean> {
  const { session, call, size, request, retries } = upload;
  const { imageCalls } = session;
  const listed = await retries(() => imageCalls.listObjects(object.Bucket, object.Key, call));
  if (!listed.some(({ key, size: found }) => key === object.Key && found === size)) return false;
  if (!isSameBuild(await retries(() => imageCalls.objectTags(object, call)), request.tags)) return false;
  await retries(() => imageCalls.tagObject(object, request.tags, call));
  call.log.info('An interrupted upload has stored the whole file; using it', { key: object.Key });
  request.progress(size, size);
  return true;
}

/** Resolves when the object exists. After a failure, the parts that were stored are deleted. */
async function uploadObject(upload: Upload, object: S3Object): Promise<void> {
  const { session, request, retries, call } = upload;
  const { imageCalls } = session;
  const adopted = await leftOf(upload, () => adoptMultipart(upload, object));
  const tagging = new URLSearchParams({ ...request.tags }).toString();
  const id = adopted?.id ?? (await imageCalls.beginUpload(object, tagging, call));
  try {
    const parts = await uploadParts(upload, object, { id, parts: adopted?.parts ?? new Map<number, Part>() });
    await retries(() => imageCalls.completeUpload(object, id, parts, call));
    // It has the tags of the upload that began it.
    if (adopted !== undefined) await retries(() => imageCalls.tagObject(object, request.tags, call));
  } catch (error) {
    await abort(object, id, upload, 'the upload failed');
    throw error;
  }
}

/**
 * Resolves with the newest unfinished upload of the object, and deletes the others. The lock of the builder ensures
 * that only one upload of a build is in progress.
 */
async function adoptMultipart(upload: Upload, object: S3Object): Promise<Multipart | undefined> {
  const { session, call, retries } = upload;
  const { imageCalls } = session;
  const unfinished = (await retries(() => imageCalls.unfinishedUploads(object.Bucket, object.Key, call)))
    .flatMap(({ Key, UploadId: id, Initiated: since }) => (Key === object.Key && id !== undefined ? { id, since } : []))
    .sort((a, b) => (b.since?.getTime() ?? 0) - (a.since?.getTime() ?? 0));
  const [newest, ...others] = unfinished;
  for (const { id } of others) await abort(object, id, upload, 'a newer upload of the same build exists');
  if (newest === undefined) return undefined;
  const parts = await retries(() => imageCalls.parts(object, newest.id, call));
  call.log.info('Continuing an interrupted upload', { key: object.Key, parts: parts.length });
  return { id: newest.id, parts: new Map(parts.map((part) => [part.PartNumber ?? 0, part])) };
}

async function abort(object: S3Object, id: string, upload: Upload, because: string): Promise<void> {
  const call = discardingCall(upload);
  const { session } = upload;
  try {
    logCloudDeletion(call.log, { kind: 'multipart-upload', externalId: { key: object.Key, upload: id } }, because);
    await unlessGone(session.imageCalls.abortUpload(object, id, call));
  } catch (error) {
    call.log.warn('Could not delete the parts of an upload; cleanup will delete them as leaked', {
      key: object.Key,
      error,
    });
  }
}

async function uploadParts(upload: Upload, object: S3Object, { id, parts }: Multipart): Promise<CompletedPart[]> {
  const { session, request, retries, call, size } = upload;
  const partSize = Math.max(PART_SIZE, Math.ceil(size / PARTS_MAX / MIB) * MIB);
  const completed: CompletedPart[] = [];
  let sent = 0;
  request.progress(sent, size);
  const file = new CheckedFile(request);
  await inParallel(file.chunks(partSize), PARTS_AT_ONCE, async ({ index, data: Body, release }) => {
    const PartNumber = index + 1;
    const stored = parts.get(PartNumber);
    completed[index] =
      stored !== undefined && isStored(stored, Body)
        ? { PartNumber, ETag: stored.ETag, ChecksumCRC32: stored.ChecksumCRC32 }
        : await retries(() => session.imageCalls.uploadPart({ ...object, UploadId: id, PartNumber, Body }, call));
    release();
    sent += Body.length;
    request.progress(sent, size);
  });
  file.check();
  return completed;
}

/** Returns true if a stored part has this content. Without a checksum, S3 describes it by its MD5 digest. */
function isStored({ Size, ETag, ChecksumCRC32: checksum }: Part, data: Buffer): boolean {
  if (Size !== data.length) return false;
  if (checksum === undefined) return ETag === `"${createHash('md5').update(data).digest('hex')}"`;
  const own = Buffer.alloc(4);
  own.writeUInt32BE(crc32(data));
  return own.toString('base64') === checksum;
}

/** Deletes the object, unless another upload of the build has adopted it. */
async function discardObject(upload: Upload, object: S3Object): Promise<void> {
  const { session, request } = upload;
  const call: Call = discardingCall(upload);
  try {
    await unlessGone(
      (async () => {
        if (!isSameUpload(await session.imageCalls.objectTags(object, call), request.tags)) return;
        logCloudDeletion(call.log, { kind: 'object', externalId: object.Key }, 'its upload has ended');
        await session.imageCalls.deleteObject(object, call);
      })(),
    );
  } catch (error) {
    call.log.warn('Could not delete the object of an upload; cleanup will delete it as leaked', {
      key: object.Key,
      error,
    });
  }
}
