/** Dependencies shared by all parts of the builder. */

import type { ApiCall, Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { BootTester } from './boot-test/boot-tester.js';
import type { DiskImageCreator } from './disk-image-creator.js';
import type { DiskImageFiles } from './disk-image-files.js';
import type { PostUploadHook } from './post-upload-hook.js';
import type { ImageSources } from './source/image-sources.js';

export interface BuilderContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Runs named background tasks and reports their failures. */
  readonly tasks: TaskSupervisor;
  readonly metrics: Metrics;
  readonly hostname: string;
  /** Fully qualified name, for records and metrics. */
  readonly fqdn: string;
  readonly version: string;
  /** Id of this builder, stored in its images-dir. It identifies the disk that has the files of a build. */
  readonly builderId: string;
  readonly files: DiskImageFiles;
  readonly creator: DiskImageCreator;
  readonly hook: PostUploadHook;
  readonly bootTester: BootTester;
  readonly sources: ImageSources;
  /** Receives every call to a cloud for traces; undefined while tracing is off. */
  readonly traces?: { apiCall(provider: string, call: ApiCall): void } | undefined;
}

/** Options of a builder; it reports no metrics without `metrics`. */
export type BuilderOptions = Omit<BuilderContext, 'metrics'> &
  Partial<Pick<BuilderContext, 'metrics'>> & {
    /** Maximum of parallel builds. Default 1. */
    readonly buildWorkers?: number;
    /** Maximum of parallel uploads. Default 4. */
    readonly uploadWorkers?: number;
  };

/** Returns the current time in unix seconds, the unit of records. */
export function unixSeconds({ clock }: Pick<BuilderContext, 'clock'>): number {
  return clock.now() / 1000;
}
