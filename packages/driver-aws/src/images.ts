/**
 * Disk images. A file becomes a snapshot, by an import from S3 or by EBS direct, and an image is registered with it; or
 * AWS imports the object as an image. Image, snapshot, task and object have the tags of the upload.
 */

import { stat } from 'node:fs/promises';
import {
  DriverError,
  IMAGE_TAGS,
  imageTagsHash,
  isDriverError,
  logCloudDeletion,
  retryPassing,
  sleep,
  TransientError,
  type Call,
  type ExternalId,
  type ImageManager,
  type ImageUploadRequest,
  type ListedImage,
} from '@nodepool/core';
import type { ArchitectureValues, Filter, Image, VolumeType } from '@aws-sdk/client-ec2';
import { tagsIn, toTags } from './client/ec2.js';
import type { ImageCalls, S3Object } from './client/image-calls.js';
import type { AwsProvider, ImageTraits } from './config.js';
import { uploadObject, type Retries } from './object-upload.js';
import type { ProviderSession } from './session.js';
import { writeSnapshot } from './snapshot-upload.js';

/** Interval between polls of imports, snapshots and images (ms). */
const POLL_INTERVAL_MS = 15_000;
/** Interval between attempts to import while AWS runs as many imports as the account may (ms). */
const IMPORT_RETRY_MS = 60_000;
/** Time limit for the cleanup after an upload (ms). */
const DISCARD_TIMEOUT_MS = 120_000;
/** Maximum length of the name of an image (EC2). */
const NAME_MAX = 128;
const GIB = 1024 ** 3;
/** Tag with the name of an image in EC2, which a copy cannot share, and that of the builder. */
export const IMAGE_NAME_TAG = 'nodepool_ami_name';
const EXTERNAL_NAME_TAG = 'nodepool_external_name';
/** Prefix of the keys of objects. */
export const OBJECT_PREFIX = 'nodepool/';
const ROOT_DEVICE = '/dev/sda1';

interface Upload {
  readonly request: ImageUploadRequest;
  readonly traits: ImageTraits;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly size: number;
  readonly token: string;
  readonly call: Call;
  readonly retries: Retries;
}

export class AwsImages implements ImageManager {
  /** `session` is resolved on use, because it does not exist before the provider is started. */
  constructor(
    private readonly session: () => ProviderSession,
    private readonly config: AwsProvider,
  ) {}

  async uploadImage(request: ImageUploadRequest): Promise<ExternalId> {
    const { connection } = this.session();
    const { size } = await stat(request.file);
    return connection.api.within(`upload of image ${request.externalName}`, request, (call) =>
      this.upload(request, size, call),
    );
  }

  /** Deletes the image and those of its snapshots that have the tags of the same upload. */
  async deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    if (typeof externalId !== 'string') return;
    const { ec2 } = this.session();
    const image = (await this.find(externalId, call))[0];
    if (image === undefined) return;
    const tags = tagsIn(image.Tags);
    await unlessGone(ec2.deregisterImage(externalId, call));
    for (const { SnapshotId, Tags } of await ec2.snapshots(call)) {
      const isPart = image.BlockDeviceMappings?.some(({ Ebs }) => Ebs?.SnapshotId === SnapshotId) === true;
      if (!isPart || SnapshotId === undefined || !isSameUpload(tagsIn(Tags), tags)) continue;
      logCloudDeletion(call.log, { kind: 'snapshot', externalId: SnapshotId }, `its image ${externalId} is deleted`);
      await unlessGone(ec2.deleteSnapshot(SnapshotId, call));
    }
  }

  async listImages(call: Call): Promise<readonly ListedImage[]> {
    const Filters: Filter[] = [{ Name: 'tag-key', Values: ['nodepool_upload_id'] }];
    const images = await this.session().ec2.images({ owners: ['self'], filters: Filters }, call);
    return images.flatMap((image) => listed(image));
  }

  private async find(id: string, call: Call): Promise<readonly Image[]> {
    try {
      return await this.session().ec2.images({ ids: [id] }, call);
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return [];
      throw error;
    }
  }

  private async upload(request: ImageUploadRequest, size: number, call: Call): Promise<ExternalId> {
    const { clock, random } = this.session();
    const hash = imageTagsHash(request.tags);
    const name = `${request.externalName.replace(/[^\w()[\] ./'@-]/g, '-').slice(0, NAME_MAX - hash.length - 1)}-${hash}`;
    const upload: Upload = {
      request,
      traits: this.traitsOf(request.image),
      name,
      tags: {
        ...request.metadata,
        ...request.tags,
        Name: request.externalName,
        [EXTERNAL_NAME_TAG]: request.externalName,
        [IMAGE_NAME_TAG]: name,
      },
      size,
      token: hash,
      call,
      retries: (work) => retryPassing({ clock, random, signal: call.signal }, work),
    };
    const copied = await this.copy(upload);
    if (copied !== undefined) return copied;
    const { importMethod } = upload.traits;
    if (importMethod === 'ebs-direct') return this.register(upload, await this.directSnapshot(upload));
    return this.withObject(upload, async (object) =>
      importMethod === 'image'
        ? this.importedImage(upload, object)
        : this.register(upload, await this.importedSnapshot(upload, object)),
    );
  }

  /** Copies the image of the same build in another region. Resolves with undefined if there is none. */
  private async copy(upload: Upload): Promise<string | undefined> {
    const { imageSourceRegion: region } = this.config;
    if (region === undefined || region === this.config.region) return undefined;
    const { call, request, name, tags, token, retries } = upload;
    const same = [
      'nodepool_installation',
      'nodepool_image_name',
      'nodepool_build_id',
      'nodepool_image_format',
    ] as const;
    const filters = same.map((tag) => ({ Name: `tag:${tag}`, Values: [request.tags[tag]] }));
    const { ec2 } = this.session();
    const images = await retries(() => ec2.images({ owners: ['self'], filters }, call, region));
    const source = images.find((image) => listed(image)[0]?.ready === true);
    if (source?.ImageId === undefined) {
      call.log.info('The source region has no image of this build; uploading the file', { image: name, region });
      return undefined;
    }
    const TagSpecifications = tagSpecifications(tags, 'image', 'snapshot');
    const input = {
      Name: name,
      SourceImageId: source.ImageId,
      SourceRegion: region,
      ClientToken: token,
      TagSpecifications,
    };
    const id = await retries(() => this.calls.copyImage(input, call));
    await this.untilAvailable(id, upload);
    return id;
  }

  /** Runs work with the file as an object of the bucket, which is deleted afterwards. */
  private async withObject<T>(upload: Upload, work: (object: S3Object) => Promise<T>): Promise<T> {
    const { name, request, retries, call, size } = upload;
    const object = { Bucket: this.config.bucket ?? '', Key: `${OBJECT_PREFIX}${name}.${request.format}` };
    try {
      await uploadObject(this.calls, { object, tags: { ...request.tags }, size, upload: request, retries }, call);
      return await work(object);
    } finally {
      await this.discardObject(object, request);
    }
  }

  private async discardObject(object: S3Object, { log }: ImageUploadRequest): Promise<void> {
    const { clock, makeCall } = this.session();
    const call: Call = { ...makeCall(), deadline: clock.monotonic() + DISCARD_TIMEOUT_MS, log };
    try {
      logCloudDeletion(log, { kind: 'object', externalId: object.Key }, 'its upload has ended');
      await unlessGone(this.calls.deleteObject(object, call));
    } catch (error) {
      log.warn('Could not delete the object of an upload; cleanup will delete it as leaked', {
        key: object.Key,
        error,
      });
    }
  }

  private async directSnapshot(upload: Upload): Promise<string> {
    const { size, name, tags, token, call, retries, request } = upload;
    const sizeGib = Math.max(1, Math.ceil(size / GIB));
    const start = { sizeGib, description: name, tags, token };
    const snapshotId = await retries(() => this.calls.startSnapshot(start, call));
    try {
      await writeSnapshot(this.calls, { snapshotId, size, upload: request, retries }, call);
      await this.untilSnapshot(snapshotId, upload);
    } catch (error) {
      await this.discardSnapshot(snapshotId, upload);
      throw error;
    }
    return snapshotId;
  }

  private async untilSnapshot(id: string, upload: Upload): Promise<void> {
    const { call, retries } = upload;
    const Filters = [{ Name: 'snapshot-id', Values: [id] }];
    await this.poll(`snapshot ${id}`, upload, async () => {
      const [snapshot] = await retries(() => this.session().ec2.snapshots(call, Filters));
      if (snapshot?.State === 'error') throw failed(`snapshot ${id}`, snapshot.StateMessage);
      return snapshot?.State === 'completed' ? id : undefined;
    });
  }

  private async importedSnapshot(upload: Upload, object: S3Object): Promise<string> {
    const { request, name, tags, token, call, retries } = upload;
    const task = await this.begin(upload, () =>
      this.calls.importSnapshot(
        {
          ClientToken: token,
          Description: name,
          DiskContainer: { Description: name, Format: request.format, UserBucket: bucketOf(object) },
          TagSpecifications: tagSpecifications(tags, 'import-snapshot-task'),
        },
        call,
      ),
    );
    const id = await this.finishTask(task, upload, async () => {
      const found = await this.calls.snapshotTask(task, call);
      const { Status, StatusMessage, SnapshotId } = found?.SnapshotTaskDetail ?? {};
      return { status: Status, message: StatusMessage, result: SnapshotId };
    });
    await retries(() => this.session().ec2.createTags([id], tags, call));
    return id;
  }

  private async importedImage(upload: Upload, object: S3Object): Promise<string> {
    const { request, traits, name, tags, token, call, retries } = upload;
    const task = await this.begin(upload, () =>
      this.calls.importImage(
        {
          ClientToken: token,
          Description: name,
          Architecture: traits.architecture,
          DiskContainers: [{ Description: name, Format: request.format, UserBucket: bucketOf(object) }],
          TagSpecifications: tagSpecifications(tags, 'import-image-task'),
        },
        call,
      ),
    );
    let snapshots: readonly string[] = [];
    const id = await this.finishTask(task, upload, async () => {
      const { Status, StatusMessage, ImageId, SnapshotDetails = [] } = (await this.calls.imageTask(task, call)) ?? {};
      snapshots = SnapshotDetails.flatMap(({ SnapshotId }) => SnapshotId ?? []);
      return { status: Status, message: StatusMessage, result: ImageId };
    });
    const [image] = await retries(() => this.session().ec2.images({ ids: [id] }, call));
    const own = { ...tags, [IMAGE_NAME_TAG]: image?.Name ?? '' };
    await retries(() => this.session().ec2.createTags([id, ...snapshots], own, call));
    return id;
  }

  /** Begins an import. While the account runs as many as it may, it is tried again. */
  private async begin({ call, request, size, retries }: Upload, start: () => Promise<string>): Promise<string> {
    for (;;) {
      try {
        return await retries(start);
      } catch (error) {
        if (!isDriverError(error) || error.code !== 'quota') throw error;
        call.log.info('AWS runs as many imports as the account may; waiting', { error });
        request.progress(size, size);
        await sleep(this.session().clock, IMPORT_RETRY_MS, call.signal);
      }
    }
  }

  /** Polls an import until it ends. An import that cannot be used is cancelled. */
  private async finishTask(
    task: string,
    upload: Upload,
    read: () => Promise<{
      readonly status: string | undefined;
      readonly message: string | undefined;
      readonly result: string | undefined;
    }>,
  ): Promise<string> {
    const { call, retries } = upload;
    const { clock } = this.session();
    const limitMs = this.config.imageImportTimeoutMs ?? Infinity;
    const startedAt = clock.monotonic();
    try {
      return await this.poll(`import ${task}`, upload, async () => {
        const { status, message, result } = await retries(read);
        if (status === 'completed') {
          if (result !== undefined) return result;
          throw failed(`import ${task}`, 'it has no result');
        }
        if (status !== undefined && status !== 'active' && status !== 'pending') {
          throw failed(`import ${task}`, `${status}: ${message ?? 'AWS gives no reason'}`);
        }
        if (clock.monotonic() - startedAt > limitMs)
          throw failed(`import ${task}`, '"image-import-timeout" has passed');
        return undefined;
      });
    } catch (error) {
      await this.calls.cancelImport(task, call).catch((cause: unknown) => {
        call.log.info('The import could not be cancelled; it may have ended', { task, error: cause });
      });
      throw error;
    }
  }

  private async register(upload: Upload, snapshotId: string): Promise<string> {
    const { traits, name, tags, call, retries } = upload;
    const { architecture, enaSupport, imdsV2, volume } = traits;
    try {
      const id = await retries(() =>
        this.calls.registerImage(
          {
            Name: name,
            Architecture: architecture as ArchitectureValues,
            VirtualizationType: 'hvm',
            EnaSupport: enaSupport,
            RootDeviceName: ROOT_DEVICE,
            ...(imdsV2 ? { ImdsSupport: 'v2.0' as const } : {}),
            BlockDeviceMappings: [
              {
                DeviceName: ROOT_DEVICE,
                Ebs: {
                  DeleteOnTermination: true,
                  SnapshotId: snapshotId,
                  VolumeType: volume.type as VolumeType,
                  VolumeSize: volume.size,
                  Iops: volume.iops,
                  Throughput: volume.throughput,
                },
              },
            ],
            TagSpecifications: tagSpecifications(tags, 'image'),
          },
          call,
        ),
      );
      await this.untilAvailable(id, upload);
      return id;
    } catch (error) {
      await this.discardSnapshot(snapshotId, upload);
      throw error;
    }
  }

  private async untilAvailable(id: string, upload: Upload): Promise<void> {
    const { call, retries } = upload;
    await this.poll(`image ${id}`, upload, async () => {
      const [image] = await retries(() => this.find(id, call));
      if (image?.State === 'failed' || image?.State === 'invalid' || image?.State === 'error') {
        throw failed(`image ${id}`, image.StateReason?.Message);
      }
      return image?.State === 'available' ? id : undefined;
    });
  }

  /** Repeats a reading until it has a result. Reports progress, so that the builder sees that AWS is at work. */
  private async poll<T>(what: string, { call, request, size }: Upload, read: () => Promise<T | undefined>): Promise<T> {
    const { clock } = this.session();
    while (clock.monotonic() < call.deadline) {
      const result = await read();
      request.progress(size, size);
      if (result !== undefined) return result;
      await sleep(clock, POLL_INTERVAL_MS, call.signal);
    }
    throw new TransientError(`${what} did not end in time`, { outcome: 'unknown' });
  }

  /** Deletes the snapshot of a failed upload, unless an image that was registered after all uses it. */
  private async discardSnapshot(id: string, { request: { log } }: Upload): Promise<void> {
    const { clock, makeCall, ec2 } = this.session();
    const call: Call = { ...makeCall(), deadline: clock.monotonic() + DISCARD_TIMEOUT_MS, log };
    try {
      logCloudDeletion(log, { kind: 'snapshot', externalId: id }, 'the upload failed');
      await unlessGone(ec2.deleteSnapshot(id, call));
    } catch (error) {
      log.warn('Could not delete the snapshot of a failed upload; cleanup will delete it as leaked', {
        snapshot: id,
        error,
      });
    }
  }

  private get calls(): ImageCalls {
    return this.session().imageCalls;
  }

  private traitsOf(image: string): ImageTraits {
    const traits = this.config.imageTraits.get(image);
    if (traits !== undefined) return traits;
    throw new DriverError('configuration', `provider ${this.config.name} has no disk image ${image}`);
  }
}

function tagSpecifications<T extends string>(
  tags: Readonly<Record<string, string>>,
  ...types: readonly T[]
): { ResourceType: T; Tags: { Key?: string | undefined; Value?: string | undefined }[] }[] {
  return types.map((ResourceType) => ({ ResourceType, Tags: toTags(tags) }));
}

function bucketOf({ Bucket, Key }: S3Object): { readonly S3Bucket: string; readonly S3Key: string } {
  return { S3Bucket: Bucket, S3Key: Key };
}

function failed(what: string, reason = 'AWS gives no reason'): DriverError {
  return new DriverError('instance-failed', `${what} has failed: ${reason}`, { outcome: 'applied' });
}

function isSameUpload(tags: Readonly<Record<string, string>>, image: Readonly<Record<string, string>>): boolean {
  return IMAGE_TAGS.every((tag) => tags[tag] !== undefined && tags[tag] === image[tag]);
}

/** Returns true if the image has another name than the one in its tags: it is a copy by another person. */
export function isCopiedImage({ Name, Tags }: Image): boolean {
  const own = tagsIn(Tags)[IMAGE_NAME_TAG];
  return own !== undefined && own !== Name;
}

function listed(image: Image): readonly ListedImage[] {
  const { ImageId, Name = '', State, Tags } = image;
  const tags = tagsIn(Tags);
  if (ImageId === undefined || !('nodepool_provider_name' in tags) || isCopiedImage(image)) return [];
  return [{ externalId: ImageId, name: tags[EXTERNAL_NAME_TAG] ?? Name, tags, ready: State === 'available' }];
}

async function unlessGone(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}
