/**
 * Uploads images: compresses the raw disk into the bucket, creates the image from there, and deletes the object.
 * Checksums of the file are compared with those of the builder, and those of the object with the data sent.
 */

import { createHash, type Hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import {
  AbortedError,
  ConfigurationError,
  deadlineSignal,
  DriverError,
  imageTagsHash,
  isDriverError,
  logCloudDeletion,
  retryPassing,
  stringAt,
  TimeoutError,
  TimerQueue,
  TransientError,
  type Call,
  type Clock,
  type ExternalId,
  type ImageManager,
  type ImageUploadRequest,
  type ListedImage,
  type RandomSource,
} from '@nodepool/core';
import { labelsOf } from './client/answers.js';
import type { Compute, ImageBody, Operation } from './client/compute.js';
import type { Storage } from './client/storage.js';
import type { GceProvider } from './config.js';
import { requestId } from './instance.js';
import { isCopy, OWN_NAME, propertyLabel, tagsInLabels, tagsToLabels } from './labels.js';
import { deleteResource } from './resources.js';
import { packDisk } from './tar-gz.js';

/** Time limit for the cleanup after an aborted upload (ms). */
const DISCARD_TIMEOUT_MS = 50_000;
const NAME_MAX_LENGTH = 63;

export interface ImageEnvironment {
  readonly compute: Compute;
  readonly storage: Storage | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
}

export class GceImages implements ImageManager {
  private around: ImageEnvironment | undefined;

  constructor(
    private readonly config: GceProvider,
    private readonly diskGrainBytes: number,
  ) {}

  start(environment: ImageEnvironment): void {
    this.around = environment;
  }

  async uploadImage(upload: ImageUploadRequest): Promise<ExternalId> {
    const what = `upload of ${upload.file} as ${upload.externalName}`;
    const limited = deadlineSignal({
      timers: new TimerQueue(this.running.clock),
      signal: upload.signal,
      deadline: upload.deadline,
      onDeadline: () => new TimeoutError(`${what} did not end in time`),
      onAbort: (cause) => new AbortedError(`${what} was aborted`, { cause }),
    });
    try {
      return await this.upload({ ...upload, signal: limited.signal });
    } catch (error) {
      await this.discard(upload);
      limited.signal.throwIfAborted();
      throw error;
    } finally {
      limited.unlink();
    }
  }

  async deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    const name = typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
    await deleteResource(this.running, { kind: 'image', name, externalId: name, tags: {} }, call);
  }

  async listImages(call: Call): Promise<readonly ListedImage[]> {
    const images = await this.running.compute.listImages(call);
    return images
      .map((image) => ({
        externalId: stringAt(image, 'name') ?? '',
        name: stringAt(image, 'description') ?? stringAt(image, 'name') ?? '',
        tags: tagsInLabels(labelsOf(image)),
        ready: stringAt(image, 'status') === 'READY',
        properties: { ...image },
      }))
      .filter(({ tags, externalId }) => 'nodepool_provider_name' in tags && !isCopy(tags, externalId));
  }

  private async upload(upload: ImageUploadRequest): Promise<ExternalId> {
    const { compute } = this.running;
    const name = imageName(upload);
    const { size } = await stat(upload.file);
    const object = await this.store(upload, size);
    const traits = this.config.imageTraits.get(upload.image);
    const operation = await this.insert(
      {
        name,
        description: upload.externalName,
        labels: { ...propertyLabels(upload.metadata), ...tagsToLabels({ ...upload.tags, [OWN_NAME]: name }) },
        rawDisk: { source: this.bucket.urlOf(object), containerType: 'TAR' },
        sourceType: 'RAW',
        ...(traits?.architecture === undefined ? {} : { architecture: traits.architecture }),
        guestOsFeatures: (traits?.guestOsFeatures ?? []).map((type) => ({ type })),
      },
      requestId('image', this.config.name, ...Object.values(upload.tags), name),
      upload,
    );
    await compute.finish(operation, `creation of image ${name}`, upload, () => upload.progress(size, size));
    await this.removeObject(object, upload, 'the image was created');
    return name;
  }

  /** Starts the creation of an image. Repeats a call that failed temporarily, which does not create a second image. */
  private insert(body: ImageBody, id: string, upload: ImageUploadRequest): Promise<Operation> {
    const { compute, clock, random } = this.running;
    return retryPassing({ clock, random, signal: upload.signal }, () => compute.insertImage(body, id, upload));
  }

  /** Compresses the file into the bucket and resolves with the object's name. */
  private async store(upload: ImageUploadRequest, size: number): Promise<string> {
    const sums = { disk: { md5: createHash('md5'), sha256: createHash('sha256') }, packed: createHash('md5') };
    let read = 0;
    const pack = (): Readable =>
      packDisk({
        file: upload.file,
        size,
        grainBytes: this.diskGrainBytes,
        signal: upload.signal,
        onPiece: (piece) => {
          sums.disk.md5.update(piece);
          sums.disk.sha256.update(piece);
          read += piece.byteLength;
          upload.progress(read, size);
        },
      });
    const name = this.fileOf(upload);
    const metadata = { ...upload.tags, [OWN_NAME]: name };
    const stored = await this.bucket.upload({ name, metadata }, hashed(pack, sums.packed), upload);
    verify(upload, 'MD5', upload.md5, sums.disk.md5);
    verify(upload, 'SHA-256', upload.sha256, sums.disk.sha256);
    const sent = sums.packed.digest('base64');
    if (stored === undefined || stored === sent) return name;
    throw new TransientError(`${name} was damaged during its upload: its MD5 in the bucket is ${stored}, not ${sent}`);
  }

  private fileOf(upload: ImageUploadRequest): string {
    return this.bucket.nameOf(`${imageName(upload)}.tar.gz`);
  }

  private async removeObject(object: string, call: Call, because: string): Promise<void> {
    logCloudDeletion(call.log, { kind: 'object', externalId: object }, because);
    try {
      await this.bucket.deleteObject(object, call);
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return;
      call.log.warn('Could not delete the file of an image from the bucket; cleanup will delete it as leaked', {
        object,
        error,
      });
    }
  }

  /** Deletes the object of a failed upload. The framework deletes the image. */
  private async discard(upload: ImageUploadRequest): Promise<void> {
    const { clock } = this.running;
    const { signal } = new AbortController();
    const call: Call = { log: upload.log, signal, deadline: clock.monotonic() + DISCARD_TIMEOUT_MS };
    await this.removeObject(this.fileOf(upload), call, 'the upload failed');
  }

  private get bucket(): Storage {
    const { storage } = this.running;
    if (storage !== undefined) return storage;
    throw new ConfigurationError(`provider ${this.config.name} needs a "storage-bucket" to upload images through`);
  }

  private get running(): ImageEnvironment {
    if (this.around !== undefined) return this.around;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }
}

/** Returns a name of up to 63 of a-z, 0-9 and -, ending with the upload's identity: projects and buckets are shared. */
export function imageName({ externalName, tags }: Pick<ImageUploadRequest, 'externalName' | 'tags'>): string {
  const hash = imageTagsHash(tags);
  const cleaned = externalName.toLowerCase().replace(/[^a-z0-9-]/g, '-');
  const named = /^[a-z]/.test(cleaned) ? cleaned : `image-${cleaned}`;
  return `${named.slice(0, NAME_MAX_LENGTH - hash.length - 1)}-${hash}`;
}

function propertyLabels(metadata: ImageUploadRequest['metadata']): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, propertyLabel(value)]));
}

/** Opens the stream when the first piece is read, so that an upload that never begins leaves no open file. */
async function* hashed(open: () => Readable, hash: Hash): AsyncGenerator<Buffer> {
  for await (const piece of open() as AsyncIterable<Buffer>) {
    hash.update(piece);
    yield piece;
  }
}

function verify({ file }: ImageUploadRequest, kind: string, expected: string | null, hash: Hash): void {
  const found = hash.digest('hex');
  if (expected === null || expected.toLowerCase() === found) return;
  throw new TransientError(`${file} differs from the build: its ${kind} is ${found} instead of ${expected}`);
}
