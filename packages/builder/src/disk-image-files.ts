/** The interface to the files of builds on this builder's disk. Implementation: `images-dir.ts`. */

import type { BuildRef } from '@nodepool/store';

/**
 * Matches ids of builds: uuids in hexadecimal digits, or sequence numbers in old data. Those begin with 0, unlike times
 * and dates (`backup-1795487324.tar.gz`), which names of foreign files often end with.
 */
export const BUILD_ID = /^(?:[0-9a-f]{32}|0[0-9]{9})$/;

export interface DiskImageFile {
  readonly format: string;
  readonly path: string;
  readonly bytes: number;
  /** Disk usage, bytes; less than `bytes` for a sparse file. */
  readonly usedBytes: number;
}

export interface Checksums {
  /** Hexadecimal digits; null if unknown. */
  readonly md5: string | null;
  readonly sha256: string | null;
}

export interface DiskImageFiles {
  /** Returns the path of a build's files without extensions. */
  basePath(build: BuildRef): string;
  /** Resolves with the builds that have at least one file. */
  list(): Promise<readonly BuildRef[]>;
  /** Resolves with the image of a build in a format; undefined if there is none. */
  find(build: BuildRef, format: string): Promise<DiskImageFile | undefined>;
  /** Checks a build's files and adds checksums. Rejects with `BuildFailedError` if an image is missing or empty. */
  complete(build: BuildRef, formats: readonly string[], signal: AbortSignal): Promise<readonly DiskImageFile[]>;
  checksums(file: DiskImageFile): Promise<Checksums>;
  /** Deletes the files of a build, if any, except images in the formats of `keep`. */
  remove(build: BuildRef, keep?: readonly string[]): Promise<void>;
  /** Resolves with the disk usage of a build's files, bytes. */
  usedBytes(build: BuildRef): Promise<number>;
  /** Resolves with the id of the installation that the files belong to; undefined if it was never written. */
  installation(): Promise<string | undefined>;
  setInstallation(id: string): Promise<void>;
  /** Resolves with the free disk space for this process, bytes. */
  freeBytes(): Promise<number>;
}
