/** The calls to EC2, S3 and EBS direct for images. */

import { isDriverError, type Call } from '@nodepool/core';
import type {
  CopyImageCommandInput,
  ImportImageCommandInput,
  ImportImageTask,
  ImportSnapshotCommandInput,
  ImportSnapshotTask,
  RegisterImageCommandInput,
} from '@aws-sdk/client-ec2';
import type { CompletedPart, MultipartUpload, Part } from '@aws-sdk/client-s3';
import type { Connection } from './connection.js';
import { loadEbs, loadEc2, loadS3 } from './libraries.js';
import { allPages } from './pages.js';

/** Time limit of the transfer of one part or block (ms). */
const TRANSFER_TIMEOUT_MS = 300_000;

export interface S3Object {
  readonly Bucket: string;
  readonly Key: string;
}

/** A block of a snapshot. */
export interface Block {
  readonly snapshotId: string;
  readonly index: number;
  readonly data: Buffer;
  /** SHA-256 in base64. */
  readonly checksum: string;
}

export class ImageCalls {
  constructor(private readonly connection: Connection) {}

  /** Begins an upload in parts. Resolves with its id. */
  async beginUpload(object: S3Object, Tagging: string, call: Call): Promise<string> {
    const { UploadId = '' } = await this.connection.send(
      { service: 's3', action: 'CreateMultipartUpload' },
      call,
      (sdk, options) =>
        sdk.s3.send(
          new (loadS3().CreateMultipartUploadCommand)({ ...object, Tagging, ChecksumAlgorithm: 'CRC32' }),
          options,
        ),
    );
    return UploadId;
  }

  async uploadPart(
    part: S3Object & { readonly UploadId: string; readonly PartNumber: number; readonly Body: Buffer },
    call: Call,
  ): Promise<CompletedPart> {
    const { ETag, ChecksumCRC32 } = await this.connection.send(
      { service: 's3', action: 'UploadPart', isTransfer: true, timeoutMs: TRANSFER_TIMEOUT_MS },
      call,
      (sdk, options) => sdk.s3.send(new (loadS3().UploadPartCommand)(part), options),
    );
    const { PartNumber } = part;
    return { PartNumber, ETag, ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }) };
  }

  async completeUpload(object: S3Object, UploadId: string, Parts: CompletedPart[], call: Call): Promise<void> {
    await this.connection.send({ service: 's3', action: 'CompleteMultipartUpload' }, call, (sdk, options) =>
      sdk.s3.send(
        new (loadS3().CompleteMultipartUploadCommand)({ ...object, UploadId, MultipartUpload: { Parts } }),
        options,
      ),
    );
  }

  async abortUpload(object: S3Object, UploadId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 's3', action: 'AbortMultipartUpload' }, call, (sdk, options) =>
      sdk.s3.send(new (loadS3().AbortMultipartUploadCommand)({ ...object, UploadId }), options),
    );
  }

  /** Lists the unfinished uploads whose keys have a prefix. */
  async unfinishedUploads(Bucket: string, Prefix: string, call: Call): Promise<readonly MultipartUpload[]> {
    return allPages(async (token) => {
      const markers = token === undefined ? {} : (JSON.parse(token) as { KeyMarker: string; UploadIdMarker: string });
      const page = await this.connection.send({ service: 's3', action: 'ListMultipartUploads' }, call, (sdk, options) =>
        sdk.s3.send(new (loadS3().ListMultipartUploadsCommand)({ Bucket, Prefix, ...markers }), options),
      );
      const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
      const next = IsTruncated === true ? JSON.stringify({ KeyMarker, UploadIdMarker }) : undefined;
      return { items: page.Uploads ?? [], next };
    });
  }

  /** Lists the parts of an unfinished upload. */
  parts(object: S3Object, UploadId: string, call: Call): Promise<readonly Part[]> {
    return allPages(async (PartNumberMarker) => {
      const page = await this.connection.send({ service: 's3', action: 'ListParts' }, call, (sdk, options) =>
        sdk.s3.send(new (loadS3().ListPartsCommand)({ ...object, UploadId, PartNumberMarker }), options),
      );
      return { items: page.Parts ?? [], next: page.IsTruncated === true ? page.NextPartNumberMarker : undefined };
    });
  }

  /** Lists the objects whose keys have a prefix. */
  listObjects(Bucket: string, Prefix: string, call: Call): Promise<readonly { key: string; size: number }[]> {
    return allPages(async (ContinuationToken) => {
      const page = await this.connection.send({ service: 's3', action: 'ListObjectsV2' }, call, (sdk, options) =>
        sdk.s3.send(new (loadS3().ListObjectsV2Command)({ Bucket, Prefix, ContinuationToken }), options),
      );
      const items = (page.Contents ?? []).map(({ Key: key = '', Size: size = 0 }) => ({ key, size }));
      return { items, next: page.NextContinuationToken };
    });
  }

  async objectTags(object: S3Object, call: Call): Promise<Readonly<Record<string, string>>> {
    const { TagSet = [] } = await this.connection.send(
      { service: 's3', action: 'GetObjectTagging' },
      call,
      (sdk, options) => sdk.s3.send(new (loadS3().GetObjectTaggingCommand)(object), options),
    );
    return Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]));
  }

  async tagObject(object: S3Object, tags: Readonly<Record<string, string>>, call: Call): Promise<void> {
    const TagSet = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    await this.connection.send({ service: 's3', action: 'PutObjectTagging' }, call, (sdk, options) =>
      sdk.s3.send(new (loadS3().PutObjectTaggingCommand)({ ...object, Tagging: { TagSet } }), options),
    );
  }

  async deleteObject(object: S3Object, call: Call): Promise<void> {
    await this.connection.send({ service: 's3', action: 'DeleteObject' }, call, (sdk, options) =>
      sdk.s3.send(new (loadS3().DeleteObjectCommand)(object), options),
    );
  }

  /** Resolves with the id of the task. */
  async importSnapshot(input: ImportSnapshotCommandInput, call: Call): Promise<string> {
    const { ImportTaskId = '' } = await this.connection.send(
      { service: 'ec2', action: 'ImportSnapshot' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().ImportSnapshotCommand)(input), options),
    );
    return ImportTaskId;
  }

  async snapshotTask(id: string, call: Call): Promise<ImportSnapshotTask | undefined> {
    const answer = await unlessUnknown(
      this.connection.send({ service: 'ec2', action: 'DescribeImportSnapshotTasks' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeImportSnapshotTasksCommand)({ ImportTaskIds: [id] }), options),
      ),
    );
    return answer?.ImportSnapshotTasks?.[0];
  }

  /** Lists the imports of the account that EC2 remembers, those of other programs included. */
  snapshotTasks(call: Call): Promise<readonly ImportSnapshotTask[]> {
    return allPages(async (NextToken) => {
      const page = await this.connection.send(
        { service: 'ec2', action: 'DescribeImportSnapshotTasks' },
        call,
        (sdk, options) => sdk.ec2().send(new (loadEc2().DescribeImportSnapshotTasksCommand)({ NextToken }), options),
      );
      return { items: page.ImportSnapshotTasks ?? [], next: page.NextToken };
    });
  }

  imageTasks(call: Call): Promise<readonly ImportImageTask[]> {
    return allPages(async (NextToken) => {
      const page = await this.connection.send(
        { service: 'ec2', action: 'DescribeImportImageTasks' },
        call,
        (sdk, options) => sdk.ec2().send(new (loadEc2().DescribeImportImageTasksCommand)({ NextToken }), options),
      );
      return { items: page.ImportImageTasks ?? [], next: page.NextToken };
    });
  }

  async importImage(input: ImportImageCommandInput, call: Call): Promise<string> {
    const { ImportTaskId = '' } = await this.connection.send(
      { service: 'ec2', action: 'ImportImage' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().ImportImageCommand)(input), options),
    );
    return ImportTaskId;
  }

  async imageTask(id: string, call: Call): Promise<ImportImageTask | undefined> {
    const answer = await unlessUnknown(
      this.connection.send({ service: 'ec2', action: 'DescribeImportImageTasks' }, call, (sdk, options) =>
        sdk.ec2().send(new (loadEc2().DescribeImportImageTasksCommand)({ ImportTaskIds: [id] }), options),
      ),
    );
    return answer?.ImportImageTasks?.[0];
  }

  async cancelImport(ImportTaskId: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ec2', action: 'CancelImportTask' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().CancelImportTaskCommand)({ ImportTaskId }), options),
    );
  }

  async registerImage(input: RegisterImageCommandInput, call: Call): Promise<string> {
    const { ImageId = '' } = await this.connection.send(
      { service: 'ec2', action: 'RegisterImage' },
      call,
      (sdk, options) => sdk.ec2().send(new (loadEc2().RegisterImageCommand)(input), options),
    );
    return ImageId;
  }

  async copyImage(input: CopyImageCommandInput, call: Call): Promise<string> {
    const { ImageId = '' } = await this.connection.send({ service: 'ec2', action: 'CopyImage' }, call, (sdk, options) =>
      sdk.ec2().send(new (loadEc2().CopyImageCommand)(input), options),
    );
    return ImageId;
  }

  /** Begins a snapshot whose blocks are written. Resolves with its id. */
  async startSnapshot(
    input: {
      readonly sizeGib: number;
      readonly description: string;
      readonly tags: Readonly<Record<string, string>>;
      readonly token: string;
    },
    call: Call,
  ): Promise<string> {
    const { sizeGib, description, tags, token } = input;
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    const { SnapshotId = '' } = await this.connection.send(
      { service: 'ebs', action: 'StartSnapshot' },
      call,
      (sdk, options) =>
        sdk.ebs.send(
          new (loadEbs().StartSnapshotCommand)({
            VolumeSize: sizeGib,
            Description: description,
            Tags,
            ClientToken: token,
          }),
          options,
        ),
    );
    return SnapshotId;
  }

  async putBlock({ snapshotId, index, data, checksum }: Block, call: Call): Promise<void> {
    await this.connection.send(
      { service: 'ebs', action: 'PutSnapshotBlock', isTransfer: true, timeoutMs: TRANSFER_TIMEOUT_MS },
      call,
      (sdk, options) =>
        sdk.ebs.send(
          new (loadEbs().PutSnapshotBlockCommand)({
            SnapshotId: snapshotId,
            BlockIndex: index,
            BlockData: data,
            DataLength: data.length,
            Checksum: checksum,
            ChecksumAlgorithm: 'SHA256',
          }),
          options,
        ),
    );
  }

  async completeSnapshot(id: string, blocks: number, checksum: string, call: Call): Promise<void> {
    await this.connection.send({ service: 'ebs', action: 'CompleteSnapshot' }, call, (sdk, options) =>
      sdk.ebs.send(
        new (loadEbs().CompleteSnapshotCommand)({
          SnapshotId: id,
          ChangedBlocksCount: blocks,
          Checksum: checksum,
          ChecksumAlgorithm: 'SHA256',
          ChecksumAggregationMethod: 'LINEAR',
        }),
        options,
      ),
    );
  }
}

/** Resolves with undefined if EC2 does not know the task, e.g. a new one. */
async function unlessUnknown<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isDriverError(error) && error.code === 'not-found') return undefined;
    throw error;
  }
}
