/**
 * Imports of objects as snapshots and images. The task has the tags of the upload from its creation. EC2 does not tag
 * what it creates, so that snapshots and images are tagged after the import, each from its own task: by the upload, or,
 * if its builder was killed, by the cleanup of a launcher.
 */

import { isDriverError, logCloudDeletion, sleep, type Call } from '@nodepool/core';
import { tagsIn, toTags } from './client/ec2.js';
import type { S3Object } from './client/image-calls.js';
import type { Tags } from './identity.js';
import { descriptionOfImport, hasImageTags, IMAGE_NAME_TAG, SNAPSHOT_ID_TAG } from './image-identity.js';
import { discardingCall, failed, onceKnown, pollUntil, unlessGone, type Upload } from './image-upload.js';
import type { ProviderSession } from './session.js';

/** Interval between attempts to import while AWS runs as many imports as the account may (ms). */
const IMPORT_RETRY_MS = 60_000;
/** Maximum number of rounds that look for the results of a completed import. */
const LOOKS = 3;

interface TaskState {
  readonly status: string | undefined;
  readonly message: string | undefined;
  readonly result: string | undefined;
}

/** Resolves with the id of the snapshot. */
export async function importSnapshot(upload: Upload, object: S3Object): Promise<string> {
  const { session, request, name, tags, token, call } = upload;
  const { imageCalls, ec2 } = session;
  const disk = { Description: name, Format: request.format, UserBucket: bucketOf(object) };
  const TagSpecifications = [{ ResourceType: 'import-snapshot-task' as const, Tags: toTags(tags) }];
  const input = { ClientToken: token, Description: name, DiskContainer: disk, TagSpecifications };
  const task = await begin(upload, () => imageCalls.importSnapshot(input, call));
  const id = await finish(task, upload, async () => {
    const found = await imageCalls.snapshotTask(task, call);
    const { Status, StatusMessage, SnapshotId } = found?.SnapshotTaskDetail ?? {};
    return { status: Status, message: StatusMessage, result: SnapshotId };
  });
  await onceKnown(upload, () => ec2.createTags([id], { ...tags, [SNAPSHOT_ID_TAG]: id }, call));
  return id;
}

/** Resolves with the id of the image. */
export async function importImage(upload: Upload, object: S3Object): Promise<string> {
  const { session, request, traits, name, tags, token, call } = upload;
  const { imageCalls } = session;
  const disk = { Description: name, Format: request.format, UserBucket: bucketOf(object) };
  const input = {
    ClientToken: token,
    Description: name,
    Architecture: traits.architecture,
    DiskContainers: [disk],
    TagSpecifications: [{ ResourceType: 'import-image-task' as const, Tags: toTags(tags) }],
  };
  const task = await begin(upload, () => imageCalls.importImage(input, call));
  let snapshots: readonly string[] = [];
  const id = await finish(task, upload, async () => {
    const { Status, StatusMessage, ImageId, SnapshotDetails = [] } = (await imageCalls.imageTask(task, call)) ?? {};
    snapshots = SnapshotDetails.flatMap(({ SnapshotId }) => SnapshotId ?? []);
    return { status: Status, message: StatusMessage, result: ImageId };
  });
  // Lists can lack a new image.
  return pollUntil(`image ${id}`, upload, async () =>
    (await onceKnown(upload, () => tagImported(session, { task, tags, image: id, snapshots }, call))) ? id : undefined,
  );
}

/** Begins an import. While the account runs as many as it may, it is tried again. */
async function begin({ session, call, request, size, retries }: Upload, start: () => Promise<string>): Promise<string> {
  for (;;) {
    try {
      return await retries(start);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'quota') throw error;
      call.log.info('AWS runs as many imports as the account may; waiting', { error });
      request.progress(size, size);
      await sleep(session.clock, IMPORT_RETRY_MS, call.signal);
    }
  }
}

/** Polls an import until it ends. An import that cannot be used is cancelled. */
async function finish(task: string, upload: Upload, read: () => Promise<TaskState>): Promise<string> {
  const { session } = upload;
  const limitMs = session.config.imageImportTimeoutMs ?? Infinity;
  const startedAt = session.clock.monotonic();
  try {
    return await pollUntil(`import ${task}`, upload, async () => {
      const { status, message, result } = await onceKnown(upload, read);
      if (status === 'completed') {
        if (result !== undefined) return result;
        throw failed(`import ${task}`, 'it has no result');
      }
      if (status !== undefined && status !== 'active' && status !== 'pending') {
        throw failed(`import ${task}`, `${status}: ${message ?? 'AWS gives no reason'}`);
      }
      if (session.clock.monotonic() - startedAt > limitMs) {
        throw failed(`import ${task}`, '"image-import-timeout" has passed');
      }
      return undefined;
    });
  } catch (error) {
    await cancel(task, upload);
    throw error;
  }
}

async function cancel(task: string, upload: Upload): Promise<void> {
  const call = discardingCall(upload);
  try {
    logCloudDeletion(call.log, { kind: 'import', externalId: task }, 'the upload failed');
    await unlessGone(upload.session.imageCalls.cancelImport(task, call));
  } catch (error) {
    call.log.info('The import could not be cancelled; it may have ended', { task, error });
  }
}

interface Imported {
  readonly task: string;
  /** Tags of the task. */
  readonly tags: Tags;
  readonly image: string | undefined;
  readonly snapshots: readonly string[];
}

/**
 * Tags the snapshots and the image of a task, unless they are tagged. Compares what EC2 says about their origin.
 * Resolves with true if all of them are tagged.
 */
async function tagImported(session: ProviderSession, imported: Imported, call: Call): Promise<boolean> {
  const { task, tags, image, snapshots } = imported;
  const { ec2 } = session;
  const own = image === undefined ? tags : { ...tags, [IMAGE_NAME_TAG]: task };
  let seen = 0;
  for (const { SnapshotId: id, Description, Tags } of await ec2.snapshots(call, idFilter('snapshot-id', snapshots))) {
    if (id === undefined || Description !== descriptionOfImport(task)) continue;
    seen += 1;
    if (!hasImageTags(tagsIn(Tags))) await ec2.createTags([id], { ...own, [SNAPSHOT_ID_TAG]: id }, call);
  }
  if (image === undefined) return seen === snapshots.length;
  for (const { ImageId: id, Name, Tags } of await ec2.images({ filters: idFilter('image-id', [image]) }, call)) {
    if (id === undefined || Name !== task) continue;
    seen += 1;
    if (!hasImageTags(tagsIn(Tags))) await ec2.createTags([id], own, call);
  }
  return seen === snapshots.length + 1;
}

function idFilter(name: string, ids: readonly string[]): { Name: string; Values: string[] }[] {
  return [{ Name: name, Values: ids.length === 0 ? ['none'] : [...ids] }];
}

/** An import of an upload. */
export interface ImportTask extends Imported {
  readonly isActive: boolean;
  readonly isCompleted: boolean;
}

/** Lists the imports that have the tags of an upload to this provider. */
export async function importTasks(session: ProviderSession, call: Call): Promise<readonly ImportTask[]> {
  const { imageCalls, config } = session;
  const [ofSnapshots, ofImages] = await Promise.all([imageCalls.snapshotTasks(call), imageCalls.imageTasks(call)]);
  const all = [
    ...ofSnapshots.map(({ ImportTaskId, SnapshotTaskDetail: { Status, SnapshotId } = {}, Tags }) => {
      const snapshots = SnapshotId === undefined ? [] : [SnapshotId];
      return { task: ImportTaskId ?? '', status: Status, tags: tagsIn(Tags), image: undefined, snapshots };
    }),
    ...ofImages.map(({ ImportTaskId, Status, ImageId, SnapshotDetails = [], Tags }) => {
      const snapshots = SnapshotDetails.flatMap(({ SnapshotId }) => SnapshotId ?? []);
      return { task: ImportTaskId ?? '', status: Status, tags: tagsIn(Tags), image: ImageId, snapshots };
    }),
  ];
  return all
    .filter(({ tags }) => hasImageTags(tags) && tags.nodepool_provider_name === config.name)
    .map(({ status, ...task }) => ({
      ...{ ...task, isActive: status === 'active' || status === 'pending', isCompleted: status === 'completed' },
    }));
}

/** Tags the results of imports whose builder was killed, so that they are found as leaked. */
export class ImportResults {
  /** Number of rounds that looked at a completed task, by its id. EC2 lists tasks for days. */
  private looks = new Map<string, number>();

  constructor(private readonly session: () => ProviderSession) {}

  async tagAll(call: Call): Promise<void> {
    const session = this.session();
    // An import needs a bucket.
    if (session.config.bucket === undefined) return;
    const before = this.looks;
    this.looks = new Map();
    for (const imported of await importTasks(session, call)) {
      if (!imported.isCompleted) continue;
      const looks = before.get(imported.task) ?? 0;
      // Results that no list shows were deleted.
      const isTagged = looks < LOOKS && (await tagImported(session, imported, call));
      this.looks.set(imported.task, isTagged ? LOOKS : looks + 1);
    }
  }
}

function bucketOf({ Bucket, Key }: S3Object): { readonly S3Bucket: string; readonly S3Key: string } {
  return { S3Bucket: Bucket, S3Key: Key };
}
