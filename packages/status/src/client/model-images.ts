/** Disk images with their builds and uploads in the documents. */

export interface BuildStatus {
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly builder: string;
  readonly formats: readonly string[];
  /** The reason of its failure; null if it did not fail, or if a later build failed as well. */
  readonly failure: string | null;
  /** Whole seconds from the start of the build to its end; null if it has not ended or was imported. */
  readonly duration: number | null;
}

export interface UploadStatus {
  readonly provider: string;
  readonly build: string;
  readonly id: string;
  readonly state: string;
  readonly since: number;
  /** Percentage that the cloud has received; null if unknown. */
  readonly progress: number | null;
  readonly externalName: string | null;
  readonly failure: string | null;
  readonly review: ReviewStatus | null;
}

/** The tests of an upload, and its part in serving requests. */
export interface ReviewStatus {
  /** `current`, `previous`, `superseded`, `uploaded`, `launch-tested`, `canary`, `rejected` or `revoked`. */
  readonly standing: string;
  readonly since: number;
  readonly by: string;
  readonly reason: string;
  readonly pinned: string | null;
  readonly trial: { readonly candidate: TrialCounts; readonly current: TrialCounts; readonly judged: number } | null;
}

export interface TrialCounts {
  readonly launches: number;
  readonly failed_launches: number;
  readonly slow_launches: number;
  readonly jobs: number;
  readonly failed_jobs: number;
}

export interface ImageStatus {
  readonly name: string;
  readonly paused: boolean;
  /** Time of the pending build request, unix seconds; null if there is none. */
  readonly requested: number | null;
  /** The last ones, newest first, as those of `uploads`. */
  readonly builds: readonly BuildStatus[];
  readonly uploads: readonly UploadStatus[];
  /** The last failed build, even if a newer one succeeded. */
  readonly lastFailure: {
    readonly text: string;
    readonly time: number;
    /** Path of the log on the host of the builder. */
    readonly log: string | null;
    readonly builder: string | null;
  } | null;
  readonly labels: readonly string[];
}
