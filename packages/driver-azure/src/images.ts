/**
 * Disk images: a file is uploaded to a managed disk, an image is created from the disk, and the disk is deleted.
 *
 * Source: "Upload a VHD to Azure" (managed disks with `creationData.createOption` `Upload`).
 */

import type { Call, ExternalId, ImageManager, ImageTags, ImageUploadRequest, ListedImage } from '@nodepool/core';
import {
  DriverError,
  entryNamed,
  IMAGE_TAGS,
  imageTagsHash,
  isDriverError,
  isJsonObject,
  logCloudDeletion,
  stringAt,
  TransientError,
} from '@nodepool/core';
import type { Accepted } from './client/arm.js';
import type { Disk, Image } from './client/types.js';
import type { AzureProvider, ImageTraits } from './config.js';
import { groupIn, isCopy, nameIn, OWNER_TAG, ownerTagOf, tagsOf } from './identity.js';
import { nameOf } from './instance.js';
import { PageUpload } from './page-upload.js';
import { checkVhd } from './vhd.js';
import type { ProviderSession } from './provider-session.js';

/** Maximum length of the name of an image or disk. */
const MAX_NAME = 80;
/** Tag with the name that the builder gave to an image. */
const NAME_TAG = 'nodepool_external_name';
/** Time limit for the cleanup after an aborted upload (ms). */
const DISCARD_TIMEOUT_MS = 300_000;

export class AzureImages implements ImageManager {
  /** `session` is resolved on use, because it does not exist before the provider is started. */
  constructor(
    private readonly session: () => ProviderSession,
    private readonly config: AzureProvider,
  ) {}

  async uploadImage(upload: ImageUploadRequest): Promise<ExternalId> {
    const size = await checkVhd(upload.file);
    const name = imageNameOf(upload);
    try {
      await this.session().client.arm.within(`upload of image ${name}`, upload, (call) =>
        this.makeImage(name, size, upload, call),
      );
    } catch (error) {
      await this.discard(name, upload);
      throw error;
    }
    await this.deleteDisk(name, upload, 'the image was created');
    return name;
  }

  async deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    const name = nameOf(externalId);
    if (await this.deleteIn(undefined, name, call)) return;
    const group = await this.otherGroupOf(name, call);
    if (group === undefined) return;
    call.log.info('Deleting an image in its former resource group', { external_id: name, resource_group: group });
    await this.deleteIn(group, name, call);
  }

  async listImages(call: Call): Promise<readonly ListedImage[]> {
    const images = await this.session().client.listImages(call);
    return images.flatMap((image) => listed(image));
  }

  /** Deletes the image in a resource group, by default the provider's. Resolves with false if it was not there. */
  private async deleteIn(group: string | undefined, name: string, call: Call): Promise<boolean> {
    const session = this.session();
    let existed = false;
    const begin = async (): Promise<Accepted> => {
      const accepted = await session.client.deleteImage(name, call, group);
      existed ||= !accepted.nothing;
      return accepted;
    };
    await unlessGone(session.withRetries(() => session.finished(`deletion of image ${name}`, begin(), call), call));
    return existed;
  }

  /**
   * Resolves with the resource group of an image outside the provider's group, which may have been changed since the
   * upload. Only an image counts whose tags, as a whole, are those in its name.
   */
  private async otherGroupOf(imageName: string, call: Call): Promise<string | undefined> {
    const session = this.session();
    const images = await session.withRetries(() => session.client.listImagesOfSubscription(call), call);
    const found = images.find((image) => {
      const tags = tagsOf(image);
      const ours =
        isComplete(tags) &&
        !isCopy(image) &&
        tags.nodepool_provider_name === this.config.name &&
        imageName.endsWith(`-${imageTagsHash(tags)}`);
      const elsewhere = groupIn(image.id) !== this.config.resourceGroup.toLowerCase();
      return ours && elsewhere && (image.name ?? nameIn(image.id)) === imageName;
    });
    return groupIn(found?.id);
  }

  private async makeImage(name: string, size: number, upload: ImageUploadRequest, call: Call): Promise<void> {
    const session = this.session();
    const { client, config } = session;
    const owner = ownerTagOf(config.resourceGroup, name);
    const tags = { ...upload.metadata, ...upload.tags, [NAME_TAG]: upload.externalName, [OWNER_TAG]: owner };
    const osType = this.isWindows(upload.image) ? 'Windows' : 'Linux';
    const { generation, zoneResilient } = this.traitsOf(upload.image);
    const disk: Disk = {
      location: config.location,
      tags,
      sku: { name: 'Standard_LRS' },
      properties: {
        osType,
        hyperVGeneration: generation,
        creationData: { createOption: 'Upload', uploadSizeBytes: size },
      },
    };
    const image: Image = {
      location: config.location,
      tags,
      properties: {
        hyperVGeneration: generation,
        storageProfile: {
          zoneResilient,
          osDisk: { osType, osState: 'Generalized', managedDisk: { id: session.computeId('disks', name) } },
        },
      },
    };
    await this.step(`disk ${name}`, call, () => client.createDisk(name, disk, call));
    await this.fill(name, size, upload, call);
    const onAnswer = (): void => upload.progress(size, size);
    await this.step(`image ${name}`, call, () => client.createImage(name, image, call), onAnswer);
  }

  /** Writes the file to the disk. */
  private async fill(name: string, size: number, upload: ImageUploadRequest, call: Call): Promise<void> {
    const session = this.session();
    const granted = await this.step(`access to disk ${name}`, call, () => session.client.grantAccess(name, call));
    const sas = isJsonObject(granted) ? stringAt(granted, 'accessSAS') : undefined;
    if (sas === undefined) throw new TransientError(`Azure returned no upload URL for disk ${name}`);
    const md5 = await new PageUpload(session, upload, call, sas).send(size);
    if (upload.md5 !== null && upload.md5.toLowerCase() !== md5) {
      throw new DriverError(
        'transient',
        `${upload.file} differs from the build: its MD5 is ${md5} instead of ${upload.md5}`,
        {
          outcome: 'applied',
        },
      );
    }
    await this.step(`end of access to disk ${name}`, call, () => session.client.revokeAccess(name, call));
  }

  /** Runs a step with retries. Every step is idempotent, because it names the resource that it creates. */
  private step(
    what: string,
    call: Call,
    begin: () => ReturnType<ProviderSession['client']['createDisk']>,
    onAnswer?: () => void,
  ): ReturnType<ProviderSession['finished']> {
    const session = this.session();
    return session.withRetries(() => session.finished(what, begin(), call, onAnswer), call);
  }

  private traitsOf(image: string): ImageTraits {
    return this.config.imageTraits.get(image) ?? { generation: 'V2', zoneResilient: true };
  }

  private isWindows(image: string): boolean {
    const entry = entryNamed(this.config.section, 'diskimages', image);
    return entry !== undefined && stringAt(entry.section, 'connection-type') === 'winrm';
  }

  /** Deletes the disk. A failure does not fail the upload, whose image exists; the disk is deleted later as a leak. */
  private async deleteDisk(name: string, call: Call, because: string): Promise<void> {
    const session = this.session();
    logCloudDeletion(call.log, { kind: 'disk', externalId: name }, because);
    try {
      await unlessGone(this.step(`deletion of disk ${name}`, call, () => session.client.deleteDisk(name, call)));
    } catch (error) {
      call.log.warn('Could not delete the disk of an uploaded image; cleanup will delete it as leaked', {
        disk: name,
        error,
      });
    }
  }

  /** Deletes the image of a failed upload, then its disk, which cannot be deleted while write access is granted. */
  private async discard(name: string, { log }: ImageUploadRequest): Promise<void> {
    const session = this.session();
    const shared = session.makeCall();
    const call: Call = { signal: shared.signal, deadline: session.clock.monotonic() + DISCARD_TIMEOUT_MS, log };
    const because = 'the upload failed';
    try {
      logCloudDeletion(log, { kind: 'image', externalId: name }, because);
      await this.deleteIn(undefined, name, call);
      await unlessGone(this.step(`end of access to disk ${name}`, call, () => session.client.revokeAccess(name, call)));
    } catch (error) {
      log.warn('Could not delete the remains of a failed upload; cleanup will delete them as leaked', {
        image: name,
        error,
      });
    }
    await this.deleteDisk(name, call, because);
  }
}

/** Returns a name of letters, digits, `.`, `_`, `-` that ends with the upload's identity, for shared groups. */
function imageNameOf({ externalName, tags }: ImageUploadRequest): string {
  const hash = imageTagsHash(tags);
  return `${externalName.replace(/[^\w.-]/g, '-').slice(0, MAX_NAME - hash.length - 1)}-${hash}`;
}

function isComplete(tags: Readonly<Record<string, string>>): tags is ImageTags {
  return IMAGE_TAGS.every((tag) => tag in tags);
}

function listed(image: Image): readonly ListedImage[] {
  const name = image.name ?? nameIn(image.id);
  const tags = tagsOf(image);
  if (name === undefined || !('nodepool_provider_name' in tags) || isCopy(image)) return [];
  return [
    {
      externalId: name,
      name: tags[NAME_TAG] ?? name,
      tags,
      ready: image.properties?.provisioningState === 'Succeeded',
    },
  ];
}

async function unlessGone(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}
