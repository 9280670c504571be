/** Disk images with their builds and uploads in the documents. */

export interface BuildStatus {
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly builder: string;
  readonly formats: readonly string[];
  readonly failure: string | null;
  readonly duration: number | null;
}

export interface UploadStatus {
  readonly provider: string;
  readonly build: string;
  readonly id: string;
  readonly state: string;
  readonly since: number;
  readonly progress: number | null;
  readonly externalName: string | null;
  readonly failure: string | null;
}

export interface ImageStatus {
  readonly name: string;
  readonly paused: boolean;
  readonly requested: number | null;
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
