/** Reads a disk image in chunks, and compares it with the checksum of its build. */

import { createHash, type Hash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { DriverError, type ImageUploadRequest } from '@nodepool/core';

export interface Chunk {
  readonly index: number;
  /** Shorter than the others at the end of the file. */
  readonly data: Buffer;
  /** Returns the memory of the data, which is then used for another chunk. */
  readonly release: () => void;
}

export class CheckedFile {
  private readonly hash: Hash;
  private readonly expected: string | null;

  constructor(private readonly upload: Pick<ImageUploadRequest, 'file' | 'md5' | 'sha256'>) {
    const { md5, sha256 } = upload;
    this.expected = (sha256 ?? md5)?.toLowerCase() ?? null;
    this.hash = createHash(sha256 === null && md5 !== null ? 'md5' : 'sha256');
  }

  /**
   * Yields the whole file, once. The memory of released chunks is used again: the garbage collector frees large buffers
   * late.
   */
  async *chunks(size: number): AsyncGenerator<Chunk> {
    const free: Buffer[] = [];
    const file = await open(this.upload.file);
    try {
      for (let index = 0; ; index += 1) {
        const buffer = free.pop() ?? Buffer.alloc(size);
        let filled = 0;
        while (filled < size) {
          const { bytesRead } = await file.read(buffer, filled, size - filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        const data = buffer.subarray(0, filled);
        this.hash.update(data);
        if (filled > 0 || index === 0) yield { index, data, release: () => free.push(buffer) };
        if (filled < size) return;
      }
    } finally {
      await file.close();
    }
  }

  /** Throws if the file that was read is not the one that was built. */
  check(): void {
    const digest = this.hash.digest('hex');
    if (this.expected === null || digest === this.expected) return;
    const message = `${this.upload.file} differs from the build: its checksum is ${digest} instead of ${this.expected}`;
    throw new DriverError('transient', message, { outcome: 'applied' });
  }
}
