/** The making of disk images, as the build worker sees it. Implementation: `dib-process.ts`. */

import type { BuildRef } from '@nodepool/store';
import type { Logger } from '@nodepool/core';

/** One run of `disk-image-create`. */
export interface DiskImageJob {
  readonly image: string;
  readonly build: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds after which it is ended. */
  readonly timeoutMs: number;
  /** Ends it early. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface DiskImageCreator {
  /**
   * Runs the command to its end. Rejects with `BuildFailedError`, or with the signal's reason; nothing that it has
   * started runs any more then, as far as that can be done.
   */
  create(job: DiskImageJob): Promise<void>;
  /** Returns the path of the build's log. */
  logFile(build: BuildRef): string;
}

export type BuildFailure =
  /** The command ended with another status than 0, or by a signal. */
  | 'exit'
  /** It took longer than `build-timeout`. */
  | 'timeout'
  /** It could not be started. */
  | 'start'
  /** It ended well, but its images are not there, or empty. */
  | 'incomplete'
  /** The disk has too little room. */
  | 'space';

/** A disk image could not be made. */
export class BuildFailedError extends Error {
  readonly code = 'build-failed';

  constructor(
    readonly failure: BuildFailure,
    message: string,
    options: { readonly cause?: unknown; readonly exitCode?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'BuildFailedError';
    this.exitCode = options.exitCode;
  }

  /** As a shell would tell it; undefined when there was none. */
  readonly exitCode: number | undefined;
}
