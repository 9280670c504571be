/** Disk image builds and uploads, stored in `/nodepool/images/<image>/builds/…`. Field names are those of the JSON. */

import type { ImageReview } from './image-review.js';
import type { ExternalId } from './node.js';

export const BUILD_STATES = ['building', 'ready', 'deleting', 'failed'] as const;
export type BuildState = (typeof BUILD_STATES)[number];
export const UPLOAD_STATES = ['uploading', 'ready', 'deleting', 'failed'] as const;
export type UploadState = (typeof UPLOAD_STATES)[number];

export interface ImageBuildData {
  readonly state: BuildState;
  /** Unix seconds. */
  readonly state_time: number;
  /** Host name of the builder. */
  readonly builder: string | null;
  /** Id of the builder, stored in its `builder_id.txt`. */
  readonly builder_id: string | null;
  /** Sorted; comma-separated in the JSON. */
  readonly formats: readonly string[];
  readonly username: string | null;
  readonly python_path: string | null;
  readonly shell_type: string | null;
  /** True if the build has passed a boot test. Other Nodepool implementations preserve the field or drop it. */
  readonly boot_tested?: boolean | null;
  /** Identifies the file that another program has made; absent for builds of this builder's command. */
  readonly source?: string | null;
}

export interface ImageBuild extends ImageBuildData {
  readonly image: string;
  /** uuid4 as 32 hex digits, or a ten-digit sequence in old data. */
  readonly id: string;
}

/** The last failed build of an image. Other Nodepool implementations do not know its znode and ignore it. */
export interface ImageBuildFailure {
  /** Unix seconds at which the build ended, or was found to be interrupted. */
  readonly time: number;
  /** Id of the build; null if it failed before an id was assigned. */
  readonly build: string | null;
  /** Host name of the builder; null if unknown. */
  readonly builder: string | null;
  /** `exit`, `timeout`, `start`, `incomplete`, `space`, `processes`, `aborted` or `interrupted`. */
  readonly reason: string;
  readonly message: string;
  /** Path of the build's log on the host of the builder; null if there is no log or its path is unknown. */
  readonly log: string | null;
}

export interface ImageUploadData {
  readonly state: UploadState;
  /** Unix seconds. */
  readonly state_time: number;
  readonly external_id: ExternalId | null;
  readonly external_name: string | null;
  readonly format: string | null;
  readonly username: string | null;
  readonly python_path: string | null;
  readonly shell_type: string | null;
  /**
   * Percentage of the file that the cloud has received, during the upload. Other Nodepool implementations preserve it
   * as an unknown field or drop it.
   */
  readonly progress?: number | null;
  /**
   * True once the cloud has listed the image, false while a listed image is being confirmed as missing. If false, the
   * upload is not used for nodes and the build is uploaded again. Other Nodepool implementations preserve the field or
   * drop it.
   */
  readonly listed?: boolean | null;
  /**
   * The tests of the upload; absent if it needs none. Other Nodepool implementations use the upload without regard to
   * it, and preserve the field or drop it.
   */
  readonly review?: ImageReview | null;
}

/** Returns true if nodes can be created from the upload. */
export function isUsableUpload({ state, listed }: Pick<ImageUploadData, 'state' | 'listed'>): boolean {
  return state === 'ready' && listed !== false;
}

export interface ImageUpload extends ImageUploadData {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  /** Ten-digit sequence. */
  readonly id: string;
}
