/** Objects of the example cloud, in the JSON form of its API. */

export type CloudInstanceState = 'building' | 'running' | 'failed' | 'deleting' | 'deleted';

export interface InstanceSpec {
  readonly name: string;
  /** Name of the zone; null if the cloud chooses. */
  readonly zone: string | null;
  /** Name of a size; null if `cores` and `ram` define the size. */
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
  /** Reason for the state `failed`; null in other states. */
  readonly failure: string | null;
  readonly zone: string;
  /** Null for an instance whose cores and memory were given instead. */
  readonly size: string | null;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  readonly image: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly publicIpv4: string;
  readonly privateIpv4: string;
  readonly publicIpv6: string;
  /** Port on which the instance listens for ssh; null if it does not listen. */
  readonly sshPort: number | null;
}

/** Properties of an image to create, whose data follow. */
export interface ImageSpec {
  readonly name: string;
  readonly format: string;
  /** Bytes. */
  readonly size: number;
  /** MD5 digest in hex; null to skip the verification. */
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
  /** `queued` until all data have arrived. */
  readonly state: 'queued' | 'ready' | 'failed';
  readonly tags: Readonly<Record<string, string>>;
  readonly properties: Readonly<Record<string, string>>;
}

/** A page of a listing. `next` is the `marker` of the next page, or null for the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

export interface CloudDescription {
  readonly zones: readonly string[];
  readonly sizes: readonly { readonly name: string; readonly cores: number; readonly ram: number }[];
  /** -1 for unlimited. */
  readonly quota: { readonly instances: number; readonly cores: number; readonly ram: number };
  /** True if ids of deleted instances are used again. */
  readonly reusesIds: boolean;
}

/** Reason why a call fails. `answer-lost`: the call took effect, but the caller receives no response. */
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

/** HTTP status of each error; 0 for a lost response. */
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

export class CloudError extends Error {
  constructor(
    readonly code: CloudErrorCode,
    message: string,
    /** Wait before the next call, in whole seconds; only with `throttled`. */
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
    this.name = 'CloudError';
  }
}
