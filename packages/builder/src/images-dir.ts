/** The files in `images-dir`: `<image>-<build id>.<format>`, checksums beside it, and a folder `.d` of manifests. */

import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCodeOf } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { readInstallation, writeInstallation } from './builder-id.js';
import { CHECKSUM_KINDS, readChecksum, writeChecksums } from './checksums.js';
import { BuildFailedError } from './disk-image-creator.js';
import { BUILD_ID, type Checksums, type DiskImageFile, type DiskImageFiles } from './disk-image-files.js';

/** Matches `<image>-<build id>.<extension>`. */
const NAME = /^(?<image>.+)-(?<build>[0-9a-f]{32}|0[0-9]{9})\.(?<extension>.+)$/;
/** Unit of `blocks` in `stat`, bytes. */
const BLOCK_BYTES = 512;

interface Entry extends BuildRef {
  readonly path: string;
  readonly extension: string;
}

export class ImagesDir implements DiskImageFiles {
  constructor(private readonly folder: string) {}

  basePath({ image, id }: BuildRef): string {
    return join(this.folder, `${image}-${id}`);
  }

  async list(): Promise<readonly BuildRef[]> {
    const builds = new Map<string, BuildRef>();
    for (const { image, id } of await this.entries()) builds.set(this.basePath({ image, id }), { image, id });
    return [...builds.values()];
  }

  async find(build: BuildRef, format: string): Promise<DiskImageFile | undefined> {
    const path = `${this.basePath(build)}.${format}`;
    try {
      const { size, blocks } = await stat(path);
      return { format, path, bytes: size, usedBytes: blocks * BLOCK_BYTES };
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  async complete(build: BuildRef, formats: readonly string[], signal: AbortSignal): Promise<readonly DiskImageFile[]> {
    const files: DiskImageFile[] = [];
    for (const format of formats) {
      const file = await this.find(build, format);
      const path = `${this.basePath(build)}.${format}`;
      if (file === undefined) {
        throw new BuildFailedError('incomplete', `the build succeeded but did not create ${path}; see its log`);
      }
      if (file.bytes === 0) {
        throw new BuildFailedError('incomplete', `the build succeeded but ${path} is empty; see its log`);
      }
      files.push(file);
    }
    for (const { path } of files) {
      const known = await Promise.all(CHECKSUM_KINDS.map((kind) => readChecksum(path, kind)));
      const missing = CHECKSUM_KINDS.filter((_kind, index) => known[index] === undefined);
      if (missing.length > 0) await writeChecksums(path, missing, signal);
    }
    return files;
  }

  async checksums({ path }: DiskImageFile): Promise<Checksums> {
    const [md5, sha256] = await Promise.all([readChecksum(path, 'md5'), readChecksum(path, 'sha256')]);
    return { md5: md5 ?? null, sha256: sha256 ?? null };
  }

  async remove(build: BuildRef, keep?: readonly string[]): Promise<void> {
    for (const { path, extension } of await this.entriesOf(build)) {
      if (keep !== undefined && (extension === 'd' || keep.includes(formatOf(extension)))) continue;
      await rm(path, { recursive: true, force: true });
    }
  }

  async usedBytes(build: BuildRef): Promise<number> {
    let bytes = 0;
    for (const { path } of await this.entriesOf(build)) {
      bytes += await allocatedBytes(path);
    }
    return bytes;
  }

  installation(): Promise<string | undefined> {
    return readInstallation(this.folder);
  }

  setInstallation(id: string): Promise<void> {
    return writeInstallation(this.folder, id);
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.folder);
    return bavail * bsize;
  }

  private async entriesOf({ image, id }: BuildRef): Promise<readonly Entry[]> {
    return (await this.entries()).filter((entry) => entry.image === image && entry.id === id);
  }

  private async entries(): Promise<readonly Entry[]> {
    const names = await readdir(this.folder);
    return names.flatMap((name) => {
      const { image, build, extension } = NAME.exec(name)?.groups ?? {};
      if (image === undefined || build === undefined || extension === undefined || !BUILD_ID.test(build)) return [];
      return [{ image, id: build, extension, path: join(this.folder, name) }];
    });
  }
}

/** Resolves with the allocated bytes; 0 if the file was deleted meanwhile. */
async function allocatedBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * BLOCK_BYTES;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}

/** Returns the format of an image, or of the image beside a checksum. */
function formatOf(extension: string): string {
  return extension.replace(/\.(?:md5|sha256)(?:\.tmp)?$/, '');
}
