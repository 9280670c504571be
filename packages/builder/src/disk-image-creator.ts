/** The interface to `disk-image-create`. Implementation: `dib-process.ts`. */

import type { BuildRef } from '@nodepool/store';
import type { Logger } from '@nodepool/core';

/** One run of `disk-image-create`. */
export interface DiskImageJob {
  readonly image: string;
  readonly build: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Variables added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Time limit, milliseconds. */
  readonly timeoutMs: number;
  /** Aborts the run. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** The remedy if the command cannot be started. Default: that of `disk-image-create`. */
  readonly hint?: string;
  /** Receives the output, besides the log. */
  readonly onOutput?: (piece: Buffer) => void;
}

export interface DiskImageCreator {
  /**
   * Runs the command to its end. Rejects with `BuildFailedError`, or with the signal's reason. All processes that it
   * started have then ended, as far as possible.
   */
  create(job: DiskImageJob): Promise<void>;
  /** Returns the path of the build's log. */
  logFile(build: BuildRef): string;
  /** Resolves with the builds whose temporary files or processes remain although their builder process has ended. */
  leftovers(): Promise<readonly BuildRef[]>;
  /** Ends such a build's processes, mounts and temporary files. Rejects with `BuildFailedError` if processes stay. */
  cleanUp(build: BuildRef, log: Logger): Promise<void>;
}

export type BuildFailure =
  /** The command ended with a nonzero status or by a signal. */
  | 'exit'
  /** The build exceeded `build-timeout`. */
  | 'timeout'
  | 'start'
  /** The command succeeded, but images are missing or empty. */
  | 'incomplete'
  /** The disk has too little free space. */
  | 'space'
  /** Processes of an earlier build cannot be ended. */
  | 'processes'
  /** The image does not boot, or does not accept logins. */
  | 'boot-test'
  /** The file with the image cannot be read, or has another checksum. */
  | 'source';

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

  /** Exit code as in a shell; undefined if there was none. */
  readonly exitCode: number | undefined;
}
