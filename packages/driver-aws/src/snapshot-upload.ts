/**
 * Writes a raw disk image to a snapshot with EBS direct. Blocks of zeros are left out; every block and the whole
 * snapshot have checksums.
 *
 * Source: "Use EBS direct APIs to access the contents of an EBS snapshot".
 */

import { createHash } from 'node:crypto';
import type { Call, ImageUploadRequest } from '@nodepool/core';
import type { ImageCalls } from './client/image-calls.js';
import { CheckedFile } from './checked-file.js';
import type { Retries } from './object-upload.js';
import { inParallel } from './parallel.js';

/** Size of a block in bytes (EBS direct). */
const BLOCK = 512 * 1024;
const BLOCKS_AT_ONCE = 32;
const ZEROS = Buffer.alloc(BLOCK);

/** Writes the file and completes the snapshot. */
export async function writeSnapshot(
  calls: ImageCalls,
  options: {
    readonly snapshotId: string;
    readonly size: number;
    readonly upload: Pick<ImageUploadRequest, 'file' | 'progress' | 'md5' | 'sha256'>;
    readonly retries: Retries;
  },
  call: Call,
): Promise<void> {
  const { snapshotId, size, upload, retries } = options;
  const digests = new Map<number, Buffer>();
  let sent = 0;
  upload.progress(sent, size);
  const file = new CheckedFile(upload);
  await inParallel(file.chunks(BLOCK), BLOCKS_AT_ONCE, async ({ index, data: read }) => {
    if (!read.equals(ZEROS.subarray(0, read.length))) {
      // The last block is filled up with zeros.
      const data = read.length === BLOCK ? read : Buffer.concat([read, ZEROS.subarray(read.length)]);
      const digest = createHash('sha256').update(data).digest();
      digests.set(index, digest);
      const block = { snapshotId, index, data, checksum: digest.toString('base64') };
      await retries(() => calls.putBlock(block, call));
    }
    sent += read.length;
    upload.progress(sent, size);
  });
  file.check();
  const whole = createHash('sha256');
  for (const [, digest] of [...digests].sort(([a], [b]) => a - b)) whole.update(digest);
  await retries(() => calls.completeSnapshot(snapshotId, digests.size, whole.digest('base64'), call));
}
