/**
 * Writes a raw disk image to a snapshot with EBS direct. Blocks of zeros are left out; every block and the whole
 * snapshot have checksums.
 *
 * AWS does not list the blocks of an unfinished snapshot. A tag says how many blocks from the beginning of the file are
 * written, so that the next upload of the build can continue after them. A block can be written again.
 *
 * Source: "Use EBS direct APIs to access the contents of an EBS snapshot".
 */

import { createHash } from 'node:crypto';
import { logCloudDeletion } from '@nodepool/core';
import { CheckedFile } from './checked-file.js';
import { tagsIn } from './client/ec2.js';
import { buildFilters, isCopiedSnapshot, SNAPSHOT_ID_TAG } from './image-identity.js';
import { discardingCall, failed, leftOf, pollUntil, unlessGone, type Upload } from './image-upload.js';
import { inParallel } from './parallel.js';

const GIB = 1024 ** 3;
/** Size of a block in bytes (EBS direct). */
const BLOCK = 512 * 1024;
const BLOCKS_AT_ONCE = 32;
const ZEROS = Buffer.alloc(BLOCK);
/** Tag with the number of blocks that are written. */
const WRITTEN_TAG = 'nodepool_written_blocks';
/** Minimum interval between changes of the tag (ms). */
const MARK_INTERVAL_MS = 5000;

/** A snapshot that is being written. */
interface Draft {
  readonly id: string;
  /** Number of blocks from the beginning that need not be written again. */
  readonly written: number;
}

/** Resolves with the id of a completed snapshot of the file. Deletes the snapshot after a failure. */
export async function directSnapshot(upload: Upload): Promise<string> {
  const draft = (await leftOf(upload, () => adopt(upload))) ?? (await start(upload));
  try {
    await write(draft, upload);
    await untilCompleted(draft.id, upload);
  } catch (error) {
    await discardSnapshot(draft.id, upload);
    throw error;
  }
  return draft.id;
}

/** Deletes the snapshot of a failed upload. EC2 refuses that if an image was registered with it after all. */
export async function discardSnapshot(id: string, upload: Upload): Promise<void> {
  const call = discardingCall(upload);
  try {
    logCloudDeletion(call.log, { kind: 'snapshot', externalId: id }, 'the upload failed');
    await unlessGone(upload.session.ec2.deleteSnapshot(id, call));
  } catch (error) {
    call.log.warn('Could not delete the snapshot of a failed upload; cleanup will delete it as leaked', {
      snapshot: id,
      error,
    });
  }
}

async function start({ session, size, name, tags, token, call, retries }: Upload): Promise<Draft> {
  const snapshot = { sizeGib: sizeInGib(size), description: name, tags: { ...tags, [WRITTEN_TAG]: '0' }, token };
  return { id: await retries(() => session.imageCalls.startSnapshot(snapshot, call)), written: 0 };
}

/** Resolves with the unfinished snapshot that an interrupted upload of the same build has written furthest. */
async function adopt({ session, request, size, call, retries }: Upload): Promise<Draft | undefined> {
  const { ec2 } = session;
  const filters = [{ Name: 'status', Values: ['pending'] }, ...buildFilters(request.tags, 'same provider')];
  const found = (await retries(() => ec2.snapshots(call, filters))).flatMap((snapshot) => {
    const { SnapshotId: id, VolumeSize } = snapshot;
    const written = Number(tagsIn(snapshot.Tags)[WRITTEN_TAG] ?? NaN);
    const isUsable = VolumeSize === sizeInGib(size) && Number.isInteger(written) && !isCopiedSnapshot(snapshot);
    return isUsable && id !== undefined ? [{ id, written }] : [];
  });
  const [furthest] = found.sort((a, b) => b.written - a.written);
  if (furthest === undefined) return undefined;
  // From now on, it is a resource of this upload.
  const tags = { ...request.tags, [SNAPSHOT_ID_TAG]: furthest.id };
  await retries(() => ec2.createTags([furthest.id], tags, call));
  call.log.info('Continuing an interrupted upload', { snapshot: furthest.id, blocks: furthest.written });
  return furthest;
}

async function write({ id: snapshotId, written }: Draft, upload: Upload): Promise<void> {
  const { session, size, request, retries, call } = upload;
  const { imageCalls } = session;
  const digests = new Map<number, Buffer>();
  const marks = new Marks(snapshotId, written, upload);
  let sent = 0;
  request.progress(sent, size);
  const file = new CheckedFile(request);
  await inParallel(file.chunks(BLOCK), BLOCKS_AT_ONCE, async ({ index, data: read, release }) => {
    if (!read.equals(ZEROS.subarray(0, read.length))) {
      // The last block is filled up with zeros.
      const data = read.length === BLOCK ? read : Buffer.concat([read, ZEROS.subarray(read.length)]);
      const digest = createHash('sha256').update(data).digest();
      digests.set(index, digest);
      const block = { snapshotId, index, data, checksum: digest.toString('base64') };
      if (index >= written) await retries(() => imageCalls.putBlock(block, call));
    }
    release();
    marks.written(index);
    sent += read.length;
    request.progress(sent, size);
  });
  await marks.settled();
  file.check();
  const whole = createHash('sha256');
  for (const [, digest] of [...digests].sort(([a], [b]) => a - b)) whole.update(digest);
  await retries(() => imageCalls.completeSnapshot(snapshotId, digests.size, whole.digest('base64'), call));
}

/** Marks the snapshot with the number of blocks that are written. */
class Marks {
  /** Blocks after `next` that are written. */
  private readonly later = new Set<number>();
  private next = 0;
  private markedAt: number;
  private marking: Promise<void> | undefined;

  constructor(
    private readonly snapshotId: string,
    private marked: number,
    private readonly upload: Upload,
  ) {
    this.markedAt = upload.session.clock.monotonic();
  }

  written(index: number): void {
    this.later.add(index);
    while (this.later.delete(this.next)) this.next += 1;
    const { clock } = this.upload.session;
    const isDue = clock.monotonic() - this.markedAt >= MARK_INTERVAL_MS && this.next > this.marked;
    if (!isDue || this.marking !== undefined) return;
    this.markedAt = clock.monotonic();
    this.marked = this.next;
    this.marking = this.mark(this.next).finally(() => (this.marking = undefined));
  }

  /** Resolves once no tag is being changed. */
  async settled(): Promise<void> {
    await this.marking;
  }

  /** Never rejects: without the tag, an interrupted upload continues further ahead. */
  private async mark(blocks: number): Promise<void> {
    const { session, call } = this.upload;
    const tags = { [WRITTEN_TAG]: String(blocks), [SNAPSHOT_ID_TAG]: this.snapshotId };
    try {
      await session.ec2.createTags([this.snapshotId], tags, call);
    } catch (error) {
      call.log.debug('The progress of a snapshot could not be written to its tags', { error });
    }
  }
}

async function untilCompleted(id: string, upload: Upload): Promise<void> {
  const { session, call, retries } = upload;
  const filters = [{ Name: 'snapshot-id', Values: [id] }];
  await pollUntil(`snapshot ${id}`, upload, async () => {
    const [snapshot] = await retries(() => session.ec2.snapshots(call, filters));
    if (snapshot?.State === 'error') throw failed(`snapshot ${id}`, snapshot.StateMessage);
    return snapshot?.State === 'completed' ? id : undefined;
  });
}

function sizeInGib(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / GIB));
}
