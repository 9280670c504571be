/** Images and snapshots: registration, copies, imports, and the direct APIs of EBS. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import {
  CompleteSnapshotCommand,
  ListSnapshotBlocksCommand,
  PutSnapshotBlockCommand,
  StartSnapshotCommand,
} from '@aws-sdk/client-ebs';
import {
  CancelImportTaskCommand,
  CopyImageCommand,
  DeleteSnapshotCommand,
  DeregisterImageCommand,
  DescribeImagesCommand,
  DescribeImportImageTasksCommand,
  DescribeImportSnapshotTasksCommand,
  DescribeSnapshotsCommand,
  EC2Client,
  ImportImageCommand,
  ImportSnapshotCommand,
  RegisterImageCommand,
  type ImportSnapshotCommandInput,
  type RegisterImageCommandInput,
  type SnapshotTaskDetail,
} from '@aws-sdk/client-ec2';
import { BUCKET } from '../src/index.js';
import { codeOf, Fixture } from './support/fixture.js';

const BLOCK = 524_288;
const HOUR = 3_600_000;
let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start({ importMs: 60_000, resourceMs: 5000 });
});

afterEach(() => aws.close());

function sha256(content: Uint8Array, encoding: 'hex' | 'base64' = 'base64'): string {
  return createHash('sha256').update(content).digest(encoding);
}

/** Writes a snapshot of one block, and returns its id. */
async function writeSnapshot(): Promise<string> {
  const { SnapshotId } = await aws.ebs.send(new StartSnapshotCommand({ VolumeSize: 1 }));
  const data = Buffer.alloc(BLOCK, 'x');
  await put(SnapshotId, 0, data);
  await aws.ebs.send(new CompleteSnapshotCommand({ SnapshotId, ChangedBlocksCount: 1 }));
  return SnapshotId ?? '';
}

async function put(
  SnapshotId: string | undefined,
  BlockIndex: number,
  data: Buffer,
  sum = sha256(data),
): Promise<unknown> {
  const common = { SnapshotId, BlockIndex, DataLength: data.length, ChecksumAlgorithm: 'SHA256' } as const;
  return aws.ebs.send(new PutSnapshotBlockCommand({ ...common, BlockData: data, Checksum: sum }));
}

function imageOf(SnapshotId: string, changes: Partial<RegisterImageCommandInput> = {}): RegisterImageCommand {
  return new RegisterImageCommand({
    ...{
      Name: 'ci-1',
      Architecture: 'x86_64',
      RootDeviceName: '/dev/sda1',
      VirtualizationType: 'hvm',
      EnaSupport: true,
    },
    BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { SnapshotId, VolumeType: 'gp3', VolumeSize: 10 } }],
    ...changes,
  });
}

describe('a snapshot of blocks', () => {
  it('has the written content', async () => {
    const start = new StartSnapshotCommand({ VolumeSize: 2, ClientToken: 'a', Tags: [{ Key: 'a', Value: 'b' }] });
    const { SnapshotId } = await aws.ebs.send(start);
    expect((await aws.ebs.send(start)).SnapshotId).toBe(SnapshotId);
    const disk = Buffer.concat([Buffer.alloc(BLOCK, 'a'), Buffer.alloc(2 * BLOCK), Buffer.alloc(100, 'b')]);
    await put(SnapshotId, 0, disk.subarray(0, BLOCK));
    await put(SnapshotId, 3, Buffer.concat([disk.subarray(3 * BLOCK), Buffer.alloc(BLOCK - 100)]));
    expect(aws.cloud.inspect.snapshots()).toMatchObject([{ state: 'pending', sha256: undefined }]);
    const { Blocks } = await aws.ebs.send(new ListSnapshotBlocksCommand({ SnapshotId }));
    expect(Blocks?.map(({ BlockIndex }) => BlockIndex)).toEqual([0, 3]);
    const complete = new CompleteSnapshotCommand({ SnapshotId, ChangedBlocksCount: 2 });
    expect((await aws.ebs.send(complete)).Status).toBe('pending');
    await aws.clock.advance(5000);
    expect((await aws.ebs.send(complete)).Status).toBe('completed');
    const hash = sha256(disk, 'hex');
    expect(aws.cloud.inspect.snapshots()).toMatchObject([{ state: 'completed', sha256: hash, tags: { a: 'b' } }]);
  });

  it('refuses wrong blocks, checksums and counts', async () => {
    const { SnapshotId } = await aws.ebs.send(new StartSnapshotCommand({ VolumeSize: 1 }));
    const data = Buffer.alloc(BLOCK, 'a');
    expect(await codeOf(put(SnapshotId, 0, data, sha256(Buffer.alloc(BLOCK))))).toBe('ValidationException');
    expect(await codeOf(put(SnapshotId, 0, data.subarray(1)))).toBe('ValidationException');
    expect(await codeOf(put(SnapshotId, 2048, data))).toBe('ValidationException');
    expect(await codeOf(put('snap-0123456789abcdef0', 0, data))).toBe('ResourceNotFoundException');
    await put(SnapshotId, 0, data);
    const complete = (ChangedBlocksCount: number, Checksum?: string): Promise<string> => {
      const sum = { Checksum, ChecksumAlgorithm: 'SHA256', ChecksumAggregationMethod: 'LINEAR' } as const;
      const input = { SnapshotId, ChangedBlocksCount, ...(Checksum === undefined ? {} : sum) };
      return codeOf(aws.ebs.send(new CompleteSnapshotCommand(input)));
    };
    expect(await complete(2)).toBe('ValidationException');
    expect(await complete(1, sha256(data))).toBe('ValidationException');
    const sums = createHash('sha256')
      .update(Buffer.from(sha256(data), 'base64'))
      .digest('base64');
    expect(await complete(1, sums)).toBe('accepted');
    expect(await codeOf(put(SnapshotId, 1, data))).toBe('ValidationException');
  });

  it('fails without writes for too long', async () => {
    const { SnapshotId } = await aws.ebs.send(new StartSnapshotCommand({ VolumeSize: 1 }));
    await aws.clock.advance(HOUR - 1);
    await put(SnapshotId, 0, Buffer.alloc(BLOCK));
    await aws.clock.advance(HOUR - 1);
    expect(aws.cloud.inspect.snapshots()).toMatchObject([{ state: 'pending' }]);
    await aws.clock.advance(1);
    expect(aws.cloud.inspect.snapshots()).toMatchObject([{ state: 'error' }]);
  });
});

describe('an image', () => {
  it('is available after its registration, and holds its snapshot', async () => {
    const snapshot = await writeSnapshot();
    expect(await codeOf(aws.ec2.send(imageOf(snapshot)))).toBe('IncorrectState');
    await aws.clock.advance(5000);
    const Tags = [{ Key: 'a', Value: 'b' }];
    const tagged = imageOf(snapshot, { TagSpecifications: [{ ResourceType: 'image', Tags }], ImdsSupport: 'v2.0' });
    const { ImageId = '' } = await aws.ec2.send(tagged);
    expect(await codeOf(aws.run({ ImageId }))).toBe('InvalidAMIID.Unavailable');
    await aws.clock.advance(5000);
    const { Images } = await aws.ec2.send(new DescribeImagesCommand({ Owners: ['self'] }));
    expect(Images).toMatchObject([{ State: 'available', Tags, ImdsSupport: 'v2.0', EnaSupport: true, Public: false }]);
    const [instance] = await aws.run({ ImageId });
    expect(instance?.MetadataOptions?.HttpTokens).toBe('required');
    expect(aws.cloud.inspect.volumes()).toMatchObject([{ sizeGib: 10, volumeType: 'gp3' }]);
    const remove = new DeleteSnapshotCommand({ SnapshotId: snapshot });
    expect(await codeOf(aws.ec2.send(remove))).toBe('InvalidSnapshot.InUse');
    await aws.ec2.send(new DeregisterImageCommand({ ImageId }));
    expect(await codeOf(aws.ec2.send(new DeregisterImageCommand({ ImageId })))).toBe('InvalidAMIID.Unavailable');
    await aws.ec2.send(remove);
    expect(await codeOf(aws.ec2.send(remove))).toBe('InvalidSnapshot.NotFound');
  });

  it('needs a good name, a root device, and tags of its own only', async () => {
    const snapshot = await writeSnapshot();
    await aws.clock.advance(5000);
    const register = (changes: Partial<RegisterImageCommandInput>): Promise<string> =>
      codeOf(aws.ec2.send(imageOf(snapshot, changes)));
    expect(await register({ Name: 'a:b:c' })).toBe('InvalidAMIName.Malformed');
    expect(await register({ RootDeviceName: '/dev/xvda' })).toBe('InvalidBlockDeviceMapping');
    const Tags = [{ Key: 'a', Value: 'b' }];
    expect(await register({ TagSpecifications: [{ ResourceType: 'snapshot', Tags }] })).toBe('InvalidParameterValue');
    expect(await register({})).toBe('accepted');
    expect(await register({})).toBe('InvalidAMIName.Duplicate');
  });

  it('without hvm and an architecture cannot be launched', async () => {
    const snapshot = await writeSnapshot();
    await aws.clock.advance(5000);
    const { ImageId } = await aws.ec2.send(imageOf(snapshot, { VirtualizationType: undefined }));
    await aws.clock.advance(5000);
    expect(await codeOf(aws.run({ ImageId }))).toBe('InvalidParameterCombination');
  });

  it('is found by owners and filters, also that of a stranger', async () => {
    const find = async (input: object): Promise<unknown> =>
      (await aws.ec2.send(new DescribeImagesCommand(input))).Images?.map(({ Name }) => Name);
    const Filters = [{ Name: 'name', Values: ['debian-12-amd64-*'] }];
    expect(await find({ Filters })).toHaveLength(2);
    expect(await find({ Filters, Owners: ['136693071363'] })).toEqual(['debian-12-amd64-20260914-2234']);
    const arm = { Name: 'architecture', Values: ['arm64'] };
    expect(await find({ Owners: ['amazon'], Filters: [arm] })).toHaveLength(2);
    const hidden = aws.cloud.addImage({ name: 'hidden', ownerId: '999988887777' });
    expect(await codeOf(find({ ImageIds: [hidden] }))).toBe('InvalidAMIID.NotFound');
  });

  it('is deleted with its snapshots if the call says so', async () => {
    const ImageId = aws.cloud.addImage({ name: 'mine', moreVolumes: { '/dev/sdf': 5 } });
    const copy = aws.cloud.duplicate(ImageId);
    const command = new DeregisterImageCommand({ ImageId, DeleteAssociatedSnapshots: true });
    expect((await aws.ec2.send(command)).DeleteSnapshotResults).toMatchObject([
      { ReturnCode: 'success' },
      { ReturnCode: 'success' },
    ]);
    expect(aws.cloud.inspect.images().map(({ id }) => id)).toEqual([copy]);
    expect(aws.cloud.inspect.snapshots()).toHaveLength(2);
  });

  it('is copied to another region with its snapshots and tags', async () => {
    const SourceImageId = aws.cloud.addImage({ name: 'mine', tags: { build: '1' } });
    const west = new EC2Client(aws.config('us-west-2'));
    const copy = new CopyImageCommand({
      ...{ Name: 'mine', SourceImageId, SourceRegion: 'us-east-1', ClientToken: 'c', CopyImageTags: true },
      TagSpecifications: [
        { ResourceType: 'image', Tags: [{ Key: 'upload', Value: '2' }] },
        { ResourceType: 'snapshot', Tags: [{ Key: 'upload', Value: '2' }] },
      ],
    });
    const { ImageId } = await west.send(copy);
    expect((await west.send(copy)).ImageId).toBe(ImageId);
    const [, copied] = aws.cloud.inspect.images();
    expect(copied).toMatchObject({
      ...{ region: 'us-west-2', id: ImageId, state: 'pending', tags: { build: '1', upload: '2' } },
      copyOf: { imageId: SourceImageId, region: 'us-east-1' },
    });
    expect(aws.cloud.inspect.snapshots()[1]).toMatchObject({ region: 'us-west-2', tags: { upload: '2' } });
    aws.cloud.faults.add({ on: 'ec2.CopyImage', fault: { kind: 'task-failure', message: 'no more room' } });
    await west.send(new CopyImageCommand({ Name: 'other', SourceImageId, SourceRegion: 'us-east-1' }));
    await aws.clock.advance(5000);
    const { Images } = await west.send(new DescribeImagesCommand({ Owners: ['self'] }));
    expect(Images).toMatchObject([
      { State: 'available' },
      { State: 'failed', StateReason: { Message: 'no more room' } },
    ]);
    west.destroy();
  });
});

describe('an import', () => {
  const importSnapshot = async (changes: Partial<ImportSnapshotCommandInput> = {}): Promise<string> => {
    const DiskContainer = { Format: 'RAW', UserBucket: { S3Bucket: BUCKET, S3Key: 'disk.raw' } };
    const { ImportTaskId = '' } = await aws.ec2.send(new ImportSnapshotCommand({ DiskContainer, ...changes }));
    return ImportTaskId;
  };
  const detailOf = async (ImportTaskId: string): Promise<SnapshotTaskDetail | undefined> => {
    const ask = new DescribeImportSnapshotTasksCommand({ ImportTaskIds: [ImportTaskId] });
    return (await aws.ec2.send(ask)).ImportSnapshotTasks?.[0]?.SnapshotTaskDetail;
  };

  beforeEach(() => aws.cloud.putObject('disk.raw', Buffer.alloc(1000, 'x')));

  it('of a snapshot shows its progress, and the snapshot at its end', async () => {
    const TagSpecifications = [{ ResourceType: 'import-snapshot-task' as const, Tags: [{ Key: 'a', Value: 'b' }] }];
    const task = await importSnapshot({ ClientToken: 'a', TagSpecifications });
    expect(await importSnapshot({ ClientToken: 'a', TagSpecifications })).toBe(task);
    await aws.clock.advance(30_000);
    expect(await detailOf(task)).toMatchObject({ Status: 'active', Progress: '50' });
    await aws.clock.advance(30_000);
    const detail = await detailOf(task);
    expect(detail).toMatchObject({ Status: 'completed', UserBucket: { S3Bucket: BUCKET, S3Key: 'disk.raw' } });
    const { Snapshots } = await aws.ec2.send(new DescribeSnapshotsCommand({ OwnerIds: ['self'] }));
    expect(Snapshots).toMatchObject([{ SnapshotId: detail?.SnapshotId, State: 'completed', VolumeSize: 1 }]);
    // The tags are those of the task.
    expect(Snapshots?.[0]?.Tags).toBeUndefined();
    expect(aws.cloud.inspect.snapshots()[0]?.sha256).toBe(sha256(Buffer.alloc(1000, 'x'), 'hex'));
  });

  it('of an image makes an AMI with the name of the task', async () => {
    const DiskContainers = [{ Format: 'RAW', UserBucket: { S3Bucket: BUCKET, S3Key: 'disk.raw' } }];
    await aws.ec2.send(new ImportImageCommand({ DiskContainers, Architecture: 'x86_64' }));
    await aws.clock.advance(60_000);
    const { ImportImageTasks: [task] = [] } = await aws.ec2.send(new DescribeImportImageTasksCommand({}));
    expect(task).toMatchObject({ Status: 'completed', SnapshotDetails: [{ Status: 'completed' }] });
    const [image] = aws.cloud.inspect.images();
    expect(image).toMatchObject({ id: task?.ImageId, name: task?.ImportTaskId, tags: {} });
    expect(await codeOf(aws.run({ ImageId: image?.id }))).toBe('accepted');
  });

  it('fails with a reason', async () => {
    aws.cloud.faults.add({ on: 'ec2.ImportSnapshot', fault: { kind: 'task-failure', message: 'ClientError: no' } });
    const told = await importSnapshot();
    const UserBucket = { S3Bucket: BUCKET, S3Key: 'disk.raw' };
    const format = await importSnapshot({ DiskContainer: { Format: 'VHD', UserBucket } });
    await aws.clock.advance(60_000);
    expect(await detailOf(told)).toMatchObject({ Status: 'deleting', StatusMessage: 'ClientError: no' });
    await aws.clock.advance(5000);
    expect(await detailOf(told)).toMatchObject({ Status: 'deleted', StatusMessage: 'ClientError: no' });
    expect((await detailOf(format))?.StatusMessage).toContain('VHD');
    const absent = await importSnapshot({ DiskContainer: { UserBucket: { ...UserBucket, S3Key: 'other' } } });
    await aws.clock.advance(65_000);
    expect((await detailOf(absent))?.StatusMessage).toContain('404');
    expect(aws.cloud.inspect.snapshots()).toEqual([]);
  });

  it('needs the role vmimport, a known format, and a place', async () => {
    const UserBucket = { S3Bucket: BUCKET, S3Key: 'disk.raw' };
    const start = (Format: string): Promise<string> =>
      codeOf(importSnapshot({ DiskContainer: { Format, UserBucket } }));
    aws.cloud.setImportRole(false);
    expect(await start('RAW')).toBe('InvalidParameter');
    aws.cloud.setImportRole(true);
    expect(await start('QCOW2')).toBe('InvalidParameterValue');
    for (let count = 0; count < 5; count++) expect(await start('RAW')).toBe('accepted');
    expect(await start('RAW')).toBe('ResourceCountLimitExceeded');
  });

  it('can be cancelled', async () => {
    const ImportTaskId = await importSnapshot();
    const cancel = new CancelImportTaskCommand({ ImportTaskId, CancelReason: 'not needed' });
    expect(await aws.ec2.send(cancel)).toMatchObject({ PreviousState: 'active', State: 'deleting' });
    await aws.clock.advance(60_000);
    expect(aws.cloud.inspect.importTasks()).toMatchObject([{ state: 'deleted', message: 'not needed' }]);
    expect(aws.cloud.inspect.snapshots()).toEqual([]);
  });
});
