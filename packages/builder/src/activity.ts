/** The current work of a builder, for the stack dump, for metrics, and for waiting until it ends. */

export interface BuildActivity {
  readonly image: string;
  /** Undefined until the build has started. */
  readonly build: string | undefined;
  readonly ageMs: number;
}

export interface UploadActivity {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  /** Undefined until the upload has started. */
  readonly upload: string | undefined;
  readonly ageMs: number;
  readonly sentBytes: number;
  readonly totalBytes: number;
}

export interface CleanupActivity {
  readonly what: string;
  readonly ageMs: number;
}

export interface BuilderActivity {
  readonly builds: readonly BuildActivity[];
  readonly uploads: readonly UploadActivity[];
  readonly uploadsWaiting: number;
  readonly cleanups: readonly CleanupActivity[];
  readonly providers: readonly { readonly provider: string; readonly ready: boolean }[];
}
