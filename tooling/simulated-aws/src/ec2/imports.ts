/** Imports of disks from S3: https://docs.aws.amazon.com/vm-import/latest/userguide. */

import type {
  CancelImportTaskRequest,
  CancelImportTaskResult,
  DescribeImportImageTasksRequest,
  DescribeImportImageTasksResult,
  DescribeImportSnapshotTasksRequest,
  DescribeImportSnapshotTasksResult,
  ImportImageRequest,
  ImportImageResult,
  ImportImageTask,
  ImportSnapshotRequest,
  ImportSnapshotResult,
  ImportSnapshotTask,
  SnapshotTaskDetail,
  UserBucket,
} from '@aws-sdk/client-ec2';
import { faultOf, operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidValue, missing } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import type { DiskSource } from '../s3/buckets.js';
import { addImage, IMAGE_DEFAULTS } from './images.js';
import { filtered, pageOf, type Filterable } from './lists.js';
import type { ImportTask } from './records.js';
import { addSnapshot } from './snapshots.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

/** Where imports read disks. */
export interface ImportSources {
  /** Returns an object; undefined if it does not exist. */
  disk(bucket: string, key: string): DiskSource | undefined;
  /** True if the role of the service exists. */
  hasRole(name: string): boolean;
}

/** Maximum number of imports of an account at once. */
const MAX_IMPORTS = 5;
const DEFAULT_ROLE = 'vmimport';
const SNAPSHOT_FORMATS = ['RAW', 'VHD', 'VHDX', 'VMDK'];
const IMAGE_FORMATS = ['OVA', 'RAW', 'VHD', 'VHDX', 'VMDK'];

const FILTERS: Filterable<ImportTask> = { 'task-state': ({ status }) => status };

export function importHandlers(regionOf: (call: AwsCall) => Region, sources: ImportSources): Handlers {
  return {
    ImportSnapshot: operation<ImportSnapshotRequest, ImportSnapshotResult>((input, call) => {
      const region = regionOf(call);
      return region.idempotency.run(call.operation, input, () => {
        const tags = tagsByType(input.TagSpecifications, ['import-snapshot-task']).get('import-snapshot-task');
        const { DiskContainer: disk } = input;
        const { Description: description = '' } = input;
        const task = startTask(region, sources, { ...input, disk, description, tags, kind: 'snapshot' }, call);
        return () => shownSnapshotTask(task, region.now);
      });
    }),
    ImportImage: operation<ImportImageRequest, ImportImageResult>((input, call) => {
      const region = regionOf(call);
      return region.idempotency.run(call.operation, input, () => {
        const tags = tagsByType(input.TagSpecifications, ['import-image-task']).get('import-image-task');
        const [disk, second] = input.DiskContainers ?? [];
        if (second !== undefined) throw new AwsError('UnsupportedOperation', 'The simulation imports one disk');
        if (!['i386', 'x86_64', 'arm64', undefined].includes(input.Architecture)) {
          throw invalidValue(`Invalid architecture: ${input.Architecture}`);
        }
        const { Description: description = '' } = input;
        const task = startTask(region, sources, { ...input, disk, description, tags, kind: 'image' }, call);
        return () => shownImageTask(task, region.now);
      });
    }),
    DescribeImportSnapshotTasks: operation<DescribeImportSnapshotTasksRequest, DescribeImportSnapshotTasksResult>(
      (input, call) => {
        const region = regionOf(call);
        const { ImportTaskIds: ids } = input;
        const seen =
          ids === undefined ? region.snapshotTasks.seen(call.asOf) : region.snapshotTasks.require(ids, call.asOf);
        const { items, NextToken } = pageOf(filtered(seen, input.Filters, FILTERS), input, region.settings.pageSize);
        return { ImportSnapshotTasks: items.map((task) => shownSnapshotTask(task, region.now)), NextToken };
      },
    ),
    DescribeImportImageTasks: operation<DescribeImportImageTasksRequest, DescribeImportImageTasksResult>(
      (input, call) => {
        const region = regionOf(call);
        const { ImportTaskIds: ids } = input;
        const seen = ids === undefined ? region.imageTasks.seen(call.asOf) : region.imageTasks.require(ids, call.asOf);
        const { items, NextToken } = pageOf(filtered(seen, input.Filters, FILTERS), input, region.settings.pageSize);
        return { ImportImageTasks: items.map((task) => shownImageTask(task, region.now)), NextToken };
      },
    ),
    CancelImportTask: operation<CancelImportTaskRequest, CancelImportTaskResult>((input, call) => {
      const region = regionOf(call);
      const { ImportTaskId: id = '' } = input;
      const task = (id.startsWith('import-ami') ? region.imageTasks : region.snapshotTasks).one(id, call.asOf);
      const PreviousState = task.status;
      if (task.status !== 'active') throw new AwsError('IncorrectState', `The task ${id} is ${task.status}`);
      fail(region, task, input.CancelReason ?? 'User cancelled', call.now);
      return { ImportTaskId: id, PreviousState, State: task.status };
    }),
  };
}

interface NewTask {
  readonly kind: 'snapshot' | 'image';
  readonly description: string;
  readonly disk:
    | {
        readonly Format?: string | undefined;
        readonly UserBucket?: UserBucket | undefined;
        readonly Url?: string | undefined;
      }
    | undefined;
  readonly tags: ReadonlyMap<string, string> | undefined;
  readonly RoleName?: string | undefined;
  readonly Encrypted?: boolean | undefined;
  readonly Architecture?: string | undefined;
  readonly Platform?: string | undefined;
}

function startTask(region: Region, sources: ImportSources, given: NewTask, call: AwsCall): ImportTask {
  const { kind, disk, tags, description } = given;
  if (tags !== undefined) call.authorize('ec2:CreateTags');
  if (disk === undefined) throw missing(kind === 'image' ? 'DiskContainers' : 'DiskContainer');
  const { bucket, key } = locationOf(disk);
  const format = (disk.Format ?? 'RAW').toUpperCase();
  if (!(kind === 'image' ? IMAGE_FORMATS : SNAPSHOT_FORMATS).includes(format)) {
    throw invalidValue(`Invalid disk image format: ${disk.Format}`);
  }
  const { RoleName: role = DEFAULT_ROLE } = given;
  if (!sources.hasRole(role)) {
    const message = `The service role ${role} provided does not exist or does not have sufficient permissions`;
    throw new AwsError('InvalidParameter', message);
  }
  const active = [...region.snapshotTasks.all(), ...region.imageTasks.all()].filter(
    ({ status }) => status === 'active',
  );
  if (active.length >= MAX_IMPORTS) {
    throw new AwsError(
      'ResourceCountLimitExceeded',
      `You have exceeded the limit of ${MAX_IMPORTS} active import tasks`,
    );
  }
  const size = sources.disk(bucket, key)?.size ?? 0;
  const task: ImportTask = {
    ...region.newResource(kind === 'image' ? KINDS.imageTask : KINDS.snapshotTask, tags),
    ...{ kind, description, bucket, key, format, startedAt: call.now, endsAt: call.now + region.settings.importMs },
    ...{ status: 'active', message: undefined, snapshotId: undefined, imageId: undefined },
    ...{ sizeGib: Math.max(1, Math.ceil(size / 2 ** 30)), encrypted: given.Encrypted ?? false },
  };
  (kind === 'image' ? region.imageTasks : region.snapshotTasks).add(task);
  const failure = faultOf(call, 'task-failure')?.message;
  region.world.timeline.at(task.endsAt, (at) => {
    if (task.status === 'active') end(region, sources, task, given, failure, at);
  });
  return task;
}

function locationOf({ UserBucket: location, Url: url }: NonNullable<NewTask['disk']>): {
  readonly bucket: string;
  readonly key: string;
} {
  if (location?.S3Bucket !== undefined && location.S3Key !== undefined) {
    return { bucket: location.S3Bucket, key: location.S3Key };
  }
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/.exec(url ?? '') ?? [];
  if (bucket === undefined || key === undefined) throw missing('UserBucket');
  return { bucket, key };
}

/** Ends a task with its result, or with the reason why the disk cannot be imported. */
function end(
  region: Region,
  sources: ImportSources,
  task: ImportTask,
  given: NewTask,
  failure: string | undefined,
  at: number,
): void {
  const disk = sources.disk(task.bucket, task.key);
  const problem =
    failure ??
    (disk === undefined
      ? 'ClientError: Disk validation failed [We do not have access to the given resource. Reason 404 Not Found]'
      : disk.fits(task.format)
        ? undefined
        : `ClientError: Disk validation failed [Unsupported ${task.format} file]`);
  if (problem !== undefined) {
    fail(region, task, problem, at);
    return;
  }
  const { sizeGib, encrypted } = task;
  const description = `Created by AWS-VMImport service for ${task.id}`;
  const snapshot = addSnapshot(region, { description, sizeGib, encrypted, sha256: disk?.sha256() });
  snapshot.state = 'completed';
  snapshot.completedAt = at;
  task.snapshotId = snapshot.id;
  task.status = 'completed';
  task.message = undefined;
  if (task.kind === 'image') task.imageId = imageOf(region, task, given, at);
}

/** Returns the id of the image of a task, whose name is that of the task. */
function imageOf(region: Region, task: ImportTask, given: NewTask, at: number): string {
  const { snapshotId, sizeGib, encrypted } = task;
  const rates = { volumeType: 'gp2', iops: undefined, throughput: undefined };
  const isWindows = given.Platform?.toLowerCase() === 'windows';
  const image = addImage(region, {
    ...{ ...IMAGE_DEFAULTS, name: task.id, sharedWith: new Set(), creationDate: at, rootDeviceName: '/dev/sda1' },
    description: `AWS-VMImport service: ${isWindows ? 'Windows' : 'Linux'} - ${task.description}`,
    architecture: given.Architecture ?? 'x86_64',
    platform: isWindows ? 'windows' : undefined,
    volumes: [{ device: '/dev/sda1', snapshotId, sizeGib, encrypted, deleteOnTermination: true, ...rates }],
    ...{ state: 'available', availableAt: at, stateMessage: undefined },
  });
  return image.id;
}

/** A failed task is `deleting`, then `deleted`, with the reason. */
function fail(region: Region, task: ImportTask, message: string, at: number): void {
  task.status = 'deleting';
  task.message = message;
  region.world.timeline.at(at + region.settings.resourceMs, () => {
    task.status = 'deleted';
  });
}

function progressOf({ startedAt, endsAt }: ImportTask, now: number): string {
  const part = endsAt > startedAt ? (now - startedAt) / (endsAt - startedAt) : 0;
  return String(Math.min(99, Math.floor(part * 100)));
}

function shownSnapshotTask(task: ImportTask, now: number): ImportSnapshotTask {
  const { bucket, key, message } = task;
  const SnapshotTaskDetail: SnapshotTaskDetail = {
    ...{
      Description: task.description,
      Format: task.format,
      Status: task.status,
      DiskImageSize: task.sizeGib * 2 ** 30,
    },
    UserBucket: { S3Bucket: bucket, S3Key: key },
    ...(task.encrypted ? { Encrypted: true } : {}),
    ...(task.status === 'active' ? { Progress: progressOf(task, now), StatusMessage: 'pending' } : {}),
    ...(message === undefined ? {} : { StatusMessage: message }),
    ...(task.snapshotId === undefined ? {} : { SnapshotId: task.snapshotId }),
  };
  const { id: ImportTaskId, description: Description, tags } = task;
  return { ImportTaskId, Description, SnapshotTaskDetail, Tags: shownTags(tags) };
}

function shownImageTask(task: ImportTask, now: number): ImportImageTask {
  return {
    ...{ ImportTaskId: task.id, Description: task.description, Status: task.status, Tags: shownTags(task.tags) },
    ...(task.status === 'active' ? { Progress: progressOf(task, now), StatusMessage: 'converting' } : {}),
    ...(task.message === undefined ? {} : { StatusMessage: task.message }),
    ...(task.imageId === undefined ? {} : { ImageId: task.imageId }),
    SnapshotDetails: [
      {
        ...{ DeviceName: '/dev/sda1', Format: task.format, DiskImageSize: task.sizeGib * 2 ** 30 },
        ...{ Status: task.status, UserBucket: { S3Bucket: task.bucket, S3Key: task.key } },
        ...(task.snapshotId === undefined ? {} : { SnapshotId: task.snapshotId }),
      },
    ],
  };
}
