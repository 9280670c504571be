/** The files of builds on this builder's disk, as its workers see them. Implementation: `images-dir.ts`. */

import type { BuildRef } from '@nodepool/store';

/** Ids of builds: uuids in hexadecimal digits; those of old data are sequence numbers. */
export const BUILD_ID = /^(?:[0-9a-f]{32}|[0-9]{10})$/;

/** An image in one format. */
export interface DiskImageFile {
  readonly format: string;
  readonly path: string;
  readonly bytes: number;
}

export interface Checksums {
  /** Hexadecimal digits; null: not known. */
  readonly md5: string | null;
  readonly sha256: string | null;
}

export interface DiskImageFiles {
  /** Path of a build's files without their extensions. */
  basePath(build: BuildRef): string;
  /** Builds of which there is any file. */
  list(): Promise<readonly BuildRef[]>;
  /** The image of a build in a format; undefined: there is none. */
  find(build: BuildRef, format: string): Promise<DiskImageFile | undefined>;
  /**
   * Checks what a build has left, and computes the checksums that it has not. Rejects with `BuildFailedError` when an
   * image is missing or empty.
   */
  complete(build: BuildRef, formats: readonly string[], signal: AbortSignal): Promise<readonly DiskImageFile[]>;
  checksums(file: DiskImageFile): Promise<Checksums>;
  /** Removes the files of a build; with `keep`, only images in other formats. There being none is fine. */
  remove(build: BuildRef, keep?: readonly string[]): Promise<void>;
  /** Bytes of disk that the files of a build take. */
  usedBytes(build: BuildRef): Promise<number>;
  /** Bytes that are left for this process. */
  freeBytes(): Promise<number>;
}
