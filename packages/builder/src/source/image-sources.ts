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
}
