/**
 * Uploads and deletes disk images.
 *
 * Files are streamed. Their checksums are compared with those of the builder and of the cloud, so that a damaged upload
 * never becomes available to nodes.
 */

import {
  ConfigurationError,
  DriverError,
  isDriverError,
  retryPassing,
  sleep,
  TimeoutError,
  TransientError,
  type Call,
  type ExternalId,
  type ImageManager,
  type ImageUploadRequest,
  type JsonObject,
  type JsonValue,
  type ListedImage,
} from '@nodepool/core';
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Image } from './client/image.js';
import type { OpenStackProvider } from './config.js';
import { IMAGE_ID, isCopy, newImageId } from './image-identity.js';
import { idOf } from './resources.js';
import type { ProviderSession } from './provider-session.js';

/** Chunk size for reading files (bytes). */
const PIECE_BYTES = 64 * 1024;
/** First and longest interval between two checks of an image that the cloud is processing. */
const POLL_DELAY_MS = { first: 1000, longest: 15_000 } as const;
const DEFAULT_UPLOAD_TIMEOUT_MS = 3_600_000;

/** States in which the cloud is still processing an image. */
const UNDER_WAY = new Set(['queued', 'saving', 'uploading', 'importing']);

/** Properties that the image service requires as numbers or booleans. */
const NUMBERS = new Set(['min_disk', 'min_ram']);
const FLAGS = new Set(['protected', 'os_hidden']);

/** Checksums of the data that was read. */
interface Sums {
  readonly md5: Hash;
  readonly sha512: Hash;
}

export class OpenStackImages implements ImageManager {
  /** `session` is resolved on use, because it does not exist before the provider is started. */
  constructor(
    private readonly config: OpenStackProvider,
    private readonly session: () => ProviderSession,
  ) {}

  async uploadImage(upload: ImageUploadRequest): Promise<ExternalId> {
    const { name, source, imageTasks } = this.session().client.cloud;
    if (imageTasks) {
      throw new ConfigurationError(
        `cloud ${name} in ${source} has image_api_use_tasks, and this driver cannot upload images by tasks of the image service; create the image in another way, and name it in cloud-images`,
      );
    }
    const { size } = await stat(upload.file);
    return this.upload(upload, size);
  }

  async deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    try {
      await this.session().client.image.deleteImage(idOf(externalId), call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
    }
  }

  async listImages(call: Call): Promise<readonly ListedImage[]> {
    const images = await this.session().client.image.listOwnImages(call);
    return images
      .filter((image) => 'nodepool_provider_name' in image.properties && !isCopy(image))
      .map(({ id, name, status, properties }) => ({
        externalId: id,
        name,
        tags: Object.fromEntries(Object.entries(properties).filter(([key]) => isTag(key))),
        ready: status === 'active',
        properties,
      }));
  }

  private async upload(upload: ImageUploadRequest, size: number): Promise<ExternalId> {
    const { client, random } = this.session();
    const { id } = await client.image.createImage(descriptionOf(upload, newImageId(random)), upload);
    let sums = newSums();
    const open = (): Readable => {
      sums = newSums();
      return Readable.from(pieces(upload, size, sums), { objectMode: false, highWaterMark: PIECE_BYTES });
    };
    const timeoutMs = this.config.imageUpload?.imageUploadTimeoutMs ?? DEFAULT_UPLOAD_TIMEOUT_MS;
    await client.image.putData(id, size, open, timeoutMs, upload);
    const image = await this.untilActive(id, upload, () => upload.progress(size, size));
    verify(image, upload, size, sums);
    return id;
  }

  /**
   * Polls the image with increasing intervals, because the cloud does not notify when it is done. A failed query
   * does not discard the data that the cloud has received.
   */
  private async untilActive(id: string, call: Call, onAnswer: () => void): Promise<Image> {
    const { client, clock, random } = this.session();
    const retries = { clock, random, signal: call.signal };
    for (let waitMs: number = POLL_DELAY_MS.first; ; waitMs = Math.min(2 * waitMs, POLL_DELAY_MS.longest)) {
      const image = await retryPassing(retries, () => client.image.getImage(id, call));
      onAnswer();
      if (image.status === 'active') return image;
      if (!UNDER_WAY.has(image.status)) {
        throw new TransientError(`image ${id} became ${image.status} instead of active after its upload`, {
          outcome: 'applied',
        });
      }
      if (clock.monotonic() + waitMs >= call.deadline) {
        throw new TimeoutError(`image ${id} was still ${image.status} when the time of its upload was over`, {
          outcome: 'applied',
        });
      }
      await sleep(clock, waitMs, call.signal);
    }
  }
}

function descriptionOf(
  { externalName, format, metadata, tags, md5, sha256 }: ImageUploadRequest,
  id: string,
): JsonObject {
  return {
    ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, propertyOf(key, value)])),
    // Property names that other OpenStack tools use.
    ...(md5 === null ? {} : { 'owner_specified.openstack.md5': md5 }),
    ...(sha256 === null ? {} : { 'owner_specified.openstack.sha256': sha256 }),
    ...tags,
    [IMAGE_ID]: id,
    id,
    name: externalName,
    disk_format: format === 'vhdx' || format === 'vhd' ? format : format.replace(/^tar.*/, 'raw'),
    container_format: 'bare',
    visibility: 'private',
  };
}

function propertyOf(key: string, value: string): JsonValue {
  if (NUMBERS.has(key) && /^\d+$/.test(value)) return Number(value);
  return FLAGS.has(key) ? value.toLowerCase() === 'true' : value;
}

function isTag(key: string): boolean {
  return key.startsWith('nodepool_') && key !== IMAGE_ID;
}

function newSums(): Sums {
  return { md5: createHash('md5'), sha512: createHash('sha512') };
}

async function* pieces(upload: ImageUploadRequest, size: number, sums: Sums): AsyncGenerator<Buffer> {
  const file = createReadStream(upload.file, { signal: upload.signal, highWaterMark: PIECE_BYTES });
  let sent = 0;
  for await (const piece of file as AsyncIterable<Buffer>) {
    sums.md5.update(piece);
    sums.sha512.update(piece);
    yield piece;
    sent += piece.byteLength;
    upload.progress(sent, size);
  }
}

/** Throws if the file differs from the build, or the cloud's copy differs from the file. */
function verify(image: Image, upload: ImageUploadRequest, size: number, sums: Sums): void {
  const md5 = sums.md5.digest('hex');
  const sha512 = sums.sha512.digest('hex');
  if (upload.md5 !== null && upload.md5.toLowerCase() !== md5) {
    throw new DriverError(
      'transient',
      `${upload.file} differs from the build: its MD5 is ${md5} instead of ${upload.md5}`,
      {
        outcome: 'applied',
      },
    );
  }
  const { hash, checksum } = image;
  const got = hash?.algorithm === 'sha512' ? hash.value : undefined;
  const damaged =
    (got !== undefined && got !== sha512) ||
    (checksum !== undefined && checksum !== md5) ||
    (image.size !== undefined && image.size !== size);
  if (!damaged) return;
  throw new TransientError(
    `image ${image.id} was damaged on its way: of ${size} bytes with MD5 ${md5}, the cloud has ${image.size ?? 'an unknown number'} with ${checksum ?? got ?? ''}`,
    { outcome: 'applied' },
  );
}
