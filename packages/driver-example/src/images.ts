/**
 * Disk images: the builder uploads built images to the cloud and deletes old ones.
 *
 * Files are large, so they are streamed. The cloud receives the checksums that the builder computed, so that a damaged
 * upload never becomes a usable image.
 */

import type { Call, ExternalId, ImageManager, ImageUploadRequest, ListedImage } from '@nodepool/core';
import { isDriverError, NotFoundError } from '@nodepool/core';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ExampleCloudApi } from './client/client.js';
import type { CloudImage } from './cloud/types.js';
import { allPages } from './client/pages.js';

export class ExampleImages implements ImageManager {
  /** `cloud` is called on demand, since the client does not exist before the provider is started. */
  constructor(private readonly cloud: () => ExampleCloudApi) {}

  async uploadImage(upload: ImageUploadRequest): Promise<ExternalId> {
    const { size } = await stat(upload.file);
    return this.upload(upload, size);
  }

  async deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    try {
      await this.cloud().deleteImage(imageId(externalId), call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
    }
  }

  async listImages(call: Call): Promise<readonly ListedImage[]> {
    const images = await allPages((marker) => this.cloud().listImages(marker, call));
    return images.filter((image) => 'nodepool_provider_name' in image.tags).map(listedImage);
  }

  private async upload(upload: ImageUploadRequest, size: number): Promise<ExternalId> {
    const { externalName, format, md5, sha256, tags, metadata } = upload;
    const spec = { name: externalName, format, size, md5, sha256, tags, properties: metadata };
    const { id } = await this.cloud().createImage(spec, upload);
    const opened: Readable[] = [];
    const open = (): Readable => {
      const data = Readable.from(withProgress(upload, size), { objectMode: false });
      opened.push(data);
      return data;
    };
    try {
      await this.cloud().putImageData(id, open, upload);
    } finally {
      for (const data of opened) data.destroy();
    }
    return id;
  }
}

async function* withProgress(upload: ImageUploadRequest, size: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const piece of createReadStream(upload.file, { signal: upload.signal }) as AsyncIterable<Buffer>) {
    yield piece;
    sent += piece.byteLength;
    upload.progress(sent, size);
  }
}

/** Returns the external id as a string, the form that this cloud uses. */
export function imageId(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new NotFoundError(`${JSON.stringify(externalId)} is not the id of an image of an example cloud`);
}

function listedImage({ id, name, tags, state, properties }: CloudImage): ListedImage {
  return { externalId: id, name, tags, ready: state === 'ready', properties };
}
