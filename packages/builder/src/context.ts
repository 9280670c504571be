/** What every part of the builder gets to live with. */

import type { Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { DiskImageCreator } from './disk-image-creator.js';
import type { DiskImageFiles } from './disk-image-files.js';
import type { PostUploadHook } from './post-upload-hook.js';

export interface BuilderContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Background work: named, and heard of when it fails. */
  readonly tasks: TaskSupervisor;
  readonly metrics: Metrics;
  /** Name under which the builder registers. */
  readonly hostname: string;
  /** Fully qualified name, for records and metrics. */
  readonly fqdn: string;
  readonly version: string;
  /** Id of this builder, kept in its images-dir: what says whose disk has the files of a build. */
  readonly builderId: string;
  readonly files: DiskImageFiles;
  readonly creator: DiskImageCreator;
  readonly hook: PostUploadHook;
}

/** What a builder is made with; without `metrics` it reports none. */
export type BuilderOptions = Omit<BuilderContext, 'metrics'> &
  Partial<Pick<BuilderContext, 'metrics'>> & {
    /** Builds at once. Default 1. */
    readonly buildWorkers?: number;
    /** Uploads at once. Default 4. */
    readonly uploadWorkers?: number;
  };

/** Unix seconds, as records have them. */
export function unixSeconds({ clock }: Pick<BuilderContext, 'clock'>): number {
  return clock.now() / 1000;
}
