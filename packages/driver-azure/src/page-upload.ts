/**
 * Uploads a file to a managed disk through its SAS URL as pages of a page blob, several concurrently, each with its own
 * retries. A new disk contains zeros, so empty pages are skipped.
 *
 * Source: "Put Page", REST API of Azure Blob Storage (at most 4 MiB at once, aligned to 512 bytes).
 */

import type { PipelineRequest } from '@azure/core-rest-pipeline';
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { toDriverError, type Call, type ImageUploadRequest } from '@nodepool/core';
import type { ProviderSession } from './provider-session.js';
import type { Operation } from './client/arm.js';
import { loadPipeline } from './client/libraries.js';

const BLOCK_BYTES = 4 * 2 ** 20;
const PARALLEL = 4;
const TRIES = 8;
const STORAGE_API = '2020-10-02';
const WRITE: Operation = { service: 'storage', method: 'PUT', operation: 'page' };

export class PageUpload {
  private readonly zeros = Buffer.alloc(BLOCK_BYTES);

  constructor(
    private readonly session: ProviderSession,
    private readonly upload: ImageUploadRequest,
    private readonly call: Call,
    /** The disk's upload URL; a secret. */
    private readonly sas: string,
  ) {}

  /** Uploads the file, which has `size` bytes, and resolves with its MD5 in hex. */
  async send(size: number): Promise<string> {
    const file = await open(this.upload.file, 'r');
    try {
      return await this.sendBlocks(file, size);
    } finally {
      await file.close();
    }
  }

  private async sendBlocks(file: FileHandle, size: number): Promise<string> {
    const md5 = createHash('md5');
    const underway = new Set<Promise<void>>();
    const failures: unknown[] = [];
    let sent = 0;
    const start = (block: Buffer, offset: number): void => {
      const sending = this.sendBlock(block, offset)
        .then(() => {
          sent += block.length;
          this.upload.progress(sent, size);
        })
        .catch((error: unknown) => failures.push(error))
        .then(() => void underway.delete(sending));
      underway.add(sending);
    };
    for (let offset = 0; offset < size && failures.length === 0; offset += BLOCK_BYTES) {
      const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, size - offset));
      const { bytesRead } = await file.read(block, 0, block.length, offset);
      if (bytesRead !== block.length) throw new Error(`${this.upload.file} became shorter during its upload`);
      md5.update(block);
      start(block, offset);
      if (underway.size >= PARALLEL) await Promise.race(underway);
    }
    await Promise.all(underway);
    if (failures.length > 0) throw toDriverError(failures[0]);
    return md5.digest('hex');
  }

  private async sendBlock(block: Buffer, offset: number): Promise<void> {
    if (block.equals(this.zeros.subarray(0, block.length))) return;
    const { call, session } = this;
    const put = (): Promise<void> => session.client.arm.transfer(WRITE, call, this.requestOf(block, offset));
    await session.withRetries(put, call, TRIES);
  }

  private requestOf(block: Buffer, offset: number): PipelineRequest {
    const { createHttpHeaders, createPipelineRequest } = loadPipeline();
    return createPipelineRequest({
      url: `${this.sas}&comp=page`,
      method: 'PUT',
      body: block,
      headers: createHttpHeaders({
        'content-length': String(block.length),
        'x-ms-version': STORAGE_API,
        'x-ms-page-write': 'update',
        'x-ms-range': `bytes=${offset}-${offset + block.length - 1}`,
      }),
    });
  }
}
