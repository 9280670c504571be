/** Images of the acme cloud. */

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import {
  sleep,
  toDriverError,
  type Call,
  type Clock,
  type ImageManager,
  type ImageUploadRequest,
} from '@nodepool/core';
import type { AcmeClient } from './acme-client.js';
import { idOf } from './acme-machines.js';

const POLL_INTERVAL_MS = 60_000;

export function acmeImages(client: () => AcmeClient, clock: Clock): ImageManager {
  const untilReady = async (id: string, upload: ImageUploadRequest): Promise<void> => {
    const { size } = await stat(upload.file);
    for (;;) {
      const image = (await client().images(upload)).find((each) => each.id === id);
      upload.progress(size, size);
      if (image?.ready === true) return;
      await sleep(clock, POLL_INTERVAL_MS, upload.signal);
    }
  };
  const remove = async (id: string, call: Call): Promise<void> => {
    try {
      await client().removeImage(id, call);
    } catch (error) {
      if (toDriverError(error).code !== 'not-found') throw error;
    }
  };
  return {
    async uploadImage(upload) {
      const id = await client().createImage(upload.externalName, upload.tags, upload.sha256, upload);
      await client().upload(id, await withProgress(upload), upload);
      await untilReady(id, upload);
      return id;
    },
    deleteImage: (externalId, call) => remove(idOf(externalId), call),
    async listImages(call) {
      const images = await client().images(call);
      const originals = images.filter(({ copyOf }) => copyOf === undefined);
      return originals.map(({ id, name, tags, ready }) => ({ externalId: id, name, tags, ready }));
    },
  };
}

async function withProgress({ file, progress }: ImageUploadRequest): Promise<AsyncIterable<Uint8Array>> {
  const { size } = await stat(file);
  async function* pieces(): AsyncGenerator<Buffer> {
    let sent = 0;
    for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) {
      yield piece;
      sent += piece.byteLength;
      progress(sent, size);
    }
  }
  return pieces();
}
