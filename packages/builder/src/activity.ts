/** What the parts of a builder say of their work, for the stack dump, for metrics, and for whoever waits for its end. */

export interface BuildActivity {
  readonly image: string;
  /** Undefined: not begun. */
  readonly build: string | undefined;
  readonly ageMs: number;
}

export interface UploadActivity {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  /** Undefined: not begun. */
  readonly upload: string | undefined;
  readonly ageMs: number;
  readonly sentBytes: number;
  readonly totalBytes: number;
}

export interface CleanupActivity {
  /** What is being removed. */
  readonly what: string;
  readonly ageMs: number;
}

export interface BuilderActivity {
  readonly builds: readonly BuildActivity[];
  readonly uploads: readonly UploadActivity[];
  /** Uploads that wait for their turn. */
  readonly uploadsWaiting: number;
  readonly cleanups: readonly CleanupActivity[];
  readonly providers: readonly { readonly provider: string; readonly ready: boolean }[];
}
