/** What the example cloud talks about, as its API writes it in JSON. */

export type CloudInstanceState = 'building' | 'running' | 'failed' | 'deleting' | 'deleted';

/** What an instance shall be. */
export interface InstanceSpec {
  readonly name: string;
  /** Null: the cloud chooses. */
  readonly zone: string | null;
  /** Name of a size, or null: `cores` and `ram` say it. */
  readonly size: string | null;
  readonly cores: number | null;
  /** MiB. */
  readonly ram: number | null;
  /** Id of an uploaded image, or name of a public one. */
  readonly image: string;
  readonly tags: Readonly<Record<string, string>>;
}

export interface CloudInstance {
  readonly id: string;
  readonly name: string;
  readonly state: CloudInstanceState;
  /** Why the state is `failed`; else null. */
  readonly failure: string | null;
  readonly zone: string;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  readonly image: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly publicIpv4: string;
  readonly privateIpv4: string;
  readonly publicIpv6: string;
  /** Where the instance listens for ssh, once it does; null: it does not. */
  readonly sshPort: number | null;
}

/** What an image shall be; its data follow. */
export interface ImageSpec {
  readonly name: string;
  readonly format: string;
  /** Bytes. */
  readonly size: number;
  /** Hex; null: not verified. */
  readonly md5: string | null;
  readonly sha256: string | null;
  readonly tags: Readonly<Record<string, string>>;
  readonly properties: Readonly<Record<string, string>>;
}

export interface CloudImage {
  readonly id: string;
  readonly name: string;
  readonly format: string;
  readonly size: number;
  /** `queued`: its data have not arrived, or not completely. */
  readonly state: 'queued' | 'ready' | 'failed';
  readonly tags: Readonly<Record<string, string>>;
  readonly properties: Readonly<Record<string, string>>;
}

/** A part of a listing. `next` is the `marker` of the next part; null: this was the last. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** What the cloud offers. */
export interface CloudDescription {
  readonly zones: readonly string[];
  readonly sizes: readonly { readonly name: string; readonly cores: number; readonly ram: number }[];
  /** -1: unlimited. */
  readonly quota: { readonly instances: number; readonly cores: number; readonly ram: number };
}

/** Why the cloud refuses a call. `answer-lost`: the call took effect, and the caller hears nothing. */
export type CloudErrorCode =
  | 'invalid'
  | 'unauthorized'
  | 'quota'
  | 'not-found'
  | 'checksum'
  | 'throttled'
  | 'internal'
  | 'no-capacity'
  | 'answer-lost';

/** HTTP status of each refusal; a lost answer has none. */
export const CLOUD_ERROR_STATUS: Readonly<Record<CloudErrorCode, number>> = {
  invalid: 400,
  unauthorized: 401,
  quota: 403,
  'not-found': 404,
  checksum: 422,
  throttled: 429,
  internal: 500,
  'no-capacity': 503,
  'answer-lost': 0,
};

/** A refusal of the cloud. */
export class CloudError extends Error {
  constructor(
    readonly code: CloudErrorCode,
    message: string,
    /** When to ask again, whole seconds; with `throttled`. */
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
    this.name = 'CloudError';
  }
}
