/** The interface to images that other programs make. Implementation: `fetched-images.ts`. */

import type { ImageSourceConfig, Logger } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';

export interface SourceJob {
  readonly build: BuildRef;
  readonly source: ImageSourceConfig;
  /** Formats to create. */
  readonly formats: readonly string[];
  /** Path of the files to create, without extension. */
  readonly output: string;
  /** Time limit, milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** A file that a build from a source needs only while it runs, or to continue a download. */
export interface SourceLeftover {
  readonly image: string;
  readonly path: string;
  /** True for a part of a download, with which the next build continues. */
  readonly isResumable: boolean;
  /** Milliseconds since the epoch. */
  readonly changedMs: number;
}

export interface ImageSources {
  /**
   * Resolves with a text that changes with the contents of the source; undefined if only a download could tell, or if
   * there is no file.
   */
  identity(source: ImageSourceConfig): Promise<string | undefined>;
  /**
   * Creates the files of a build from the source. Resolves with the identity of what was used. Rejects with
   * `BuildFailedError`, or with the signal's reason.
   */
  fetch(job: SourceJob): Promise<string | undefined>;
  /** Resolves with the temporary files in images-dir, also those of builds in progress. */
  leftovers(): Promise<readonly SourceLeftover[]>;
  remove(leftover: SourceLeftover): Promise<void>;
}
