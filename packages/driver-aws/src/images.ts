/**
 * Disk images. A file becomes a snapshot, by an import from S3 or by EBS direct, and an image is registered with it; or
 * AWS imports the object as an image. Image, snapshot, task and object have the tags of the upload.
 */

import { stat } from 'node:fs/promises';
import {
  DriverError,
  imageTagsHash,
  isDriverError,
  logCloudDeletion,
  retryPassing,
  type Call,
  type ExternalId,
  type ImageManager,
  type ImageUploadRequest,
  type ListedImage,
} from '@nodepool/core';
import type { ArchitectureValues, Filter, Image, RegisterImageCommandInput, VolumeType } from '@aws-sdk/client-ec2';
import { tagsIn, toTags } from './client/ec2.js';
import type { AwsProvider, ImageTraits } from './config.js';
import { copyImage } from './image-copy.js';
import { EXTERNAL_NAME_TAG, IMAGE_NAME_TAG, isCopiedImage, isSameUpload } from './image-identity.js';
import { importImage, importSnapshot } from './image-imports.js';
import { failed, onceKnown, pollUntil, unlessGone, type Upload } from './image-upload.js';
import { withObject } from './object-upload.js';
import type { ProviderSession } from './session.js';
import { directSnapshot, discardSnapshot } from './snapshot-upload.js';

/** Maximum length of the name of an image (EC2). */
const NAME_MAX = 128;
const ROOT_DEVICE = '/dev/sda1';

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
    const session = this.session();
    const hash = imageTagsHash(request.tags);
    const name = `${request.externalName.replace(/[^\w()[\] ./'@-]/g, '-').slice(0, NAME_MAX - hash.length - 1)}-${hash}`;
    const upload: Upload = {
      session,
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
      retries: (work) => retryPassing({ clock: session.clock, random: session.random, signal: call.signal }, work),
    };
    const copied = await copyImage(upload);
    if (copied !== undefined) return this.available(copied, upload);
    const { importMethod } = upload.traits;
    if (importMethod === 'ebs-direct') return this.register(upload, await directSnapshot(upload));
    return withObject(upload, async (object) =>
      importMethod === 'image'
        ? importImage(upload, object)
        : this.register(upload, await importSnapshot(upload, object)),
    );
  }

  private async register(upload: Upload, snapshotId: string): Promise<string> {
    const { session, traits, name, tags, call } = upload;
    const { architecture, enaSupport, imdsV2, volume } = traits;
    const Ebs = {
      DeleteOnTermination: true,
      SnapshotId: snapshotId,
      VolumeType: volume.type as VolumeType,
      VolumeSize: volume.size,
      Iops: volume.iops,
      Throughput: volume.throughput,
    };
    const input: RegisterImageCommandInput = {
      Name: name,
      Architecture: architecture as ArchitectureValues,
      VirtualizationType: 'hvm',
      EnaSupport: enaSupport,
      RootDeviceName: ROOT_DEVICE,
      ...(imdsV2 ? { ImdsSupport: 'v2.0' as const } : {}),
      BlockDeviceMappings: [{ DeviceName: ROOT_DEVICE, Ebs }],
      TagSpecifications: [{ ResourceType: 'image', Tags: toTags(tags) }],
    };
    try {
      return await this.available(await onceKnown(upload, () => session.imageCalls.registerImage(input, call)), upload);
    } catch (error) {
      await discardSnapshot(snapshotId, upload);
      throw error;
    }
  }

  /** Resolves with the id once the image is available. */
  private available(id: string, upload: Upload): Promise<string> {
    return pollUntil(`image ${id}`, upload, async () => {
      const [image] = await upload.retries(() => this.find(id, upload.call));
      if (image?.State === 'failed' || image?.State === 'invalid' || image?.State === 'error') {
        throw failed(`image ${id}`, image.StateReason?.Message);
      }
      return image?.State === 'available' ? id : undefined;
    });
  }

  private traitsOf(image: string): ImageTraits {
    const traits = this.config.imageTraits.get(image);
    if (traits !== undefined) return traits;
    throw new DriverError('configuration', `provider ${this.config.name} has no disk image ${image}`);
  }
}

function listed(image: Image): readonly ListedImage[] {
  const { ImageId, Name = '', State, Tags } = image;
  const tags = tagsIn(Tags);
  if (ImageId === undefined || !('nodepool_provider_name' in tags) || isCopiedImage(image)) return [];
  return [{ externalId: ImageId, name: tags[EXTERNAL_NAME_TAG] ?? Name, tags, ready: State === 'available' }];
}
