/** A builder's disk in memory, which can be full and outlives its builder. */

import type { BuildRef } from '@nodepool/store';
import { BuildFailedError, type DiskImageFile, type DiskImageFiles } from '../../src/index.js';

const FREE = 2 ** 40;

export class MemoryDisk implements DiskImageFiles {
  /** By `<image>-<build>.<format>`; all files are sparse. */
  readonly files = new Map<string, DiskImageFile & BuildRef>();
  full = false;
  installationId: string | undefined;
  /** Called right before an image is deleted. */
  onRemove: (file: DiskImageFile & BuildRef) => void = () => undefined;

  write(build: BuildRef, format: string, bytes = 1000): void {
    const path = `${this.basePath(build)}.${format}`;
    this.files.set(path, { ...build, format, path, bytes, usedBytes: bytes / 2 });
  }

  basePath({ image, id }: BuildRef): string {
    return `/images/${image}-${id}`;
  }

  async list(): Promise<readonly BuildRef[]> {
    return [...this.files.values()].map(({ image, id }) => ({ image, id }));
  }

  async find(build: BuildRef, format: string): Promise<DiskImageFile | undefined> {
    return this.files.get(`${this.basePath(build)}.${format}`);
  }

  async complete(build: BuildRef, formats: readonly string[]): Promise<readonly DiskImageFile[]> {
    return formats.map((format) => {
      const file = this.files.get(`${this.basePath(build)}.${format}`);
      if (file === undefined || file.bytes === 0) throw new BuildFailedError('incomplete', `no ${format}`);
      return file;
    });
  }

  async checksums(): Promise<{ readonly md5: null; readonly sha256: null }> {
    return { md5: null, sha256: null };
  }

  async remove(build: BuildRef, keep: readonly string[] = []): Promise<void> {
    for (const [path, file] of this.files) {
      if (file.image !== build.image || file.id !== build.id || keep.includes(file.format)) continue;
      this.onRemove(file);
      this.files.delete(path);
    }
  }

  async usedBytes(): Promise<number> {
    return 1000;
  }

  async installation(): Promise<string | undefined> {
    return this.installationId;
  }

  async setInstallation(id: string): Promise<void> {
    this.installationId = id;
  }

  async freeBytes(): Promise<number> {
    return this.full ? 0 : FREE;
  }
}
