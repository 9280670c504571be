/** Settings of the simulated cloud. */

export interface AwsSettings {
  /** Time from the launch of an instance until it is `running` (ms). */
  readonly pendingMs: number;
  /** Time from `running` until an instance shows its public address (ms). */
  readonly addressMs: number;
  /** Time that an instance is `shutting-down` or `stopping` (ms). */
  readonly shuttingDownMs: number;
  /** Time that lists show a terminated instance (ms). AWS: about an hour. */
  readonly terminatedListedMs: number;
  /**
   * Age of what calls see (ms): new resources are unknown to calls that name them, lists omit them, and states are old.
   * The fault `lag` sets it for single calls.
   */
  readonly readLagMs: number;
  /** Time until a new volume, snapshot, image or copy is available, and until a host is (ms). */
  readonly resourceMs: number;
  /** Duration of an import task (ms). */
  readonly importMs: number;
  /** Time from a spot interruption's notice to the termination (ms). */
  readonly spotNoticeMs: number;
  /** Latency of each call (ms); half precedes its effect, half follows it. */
  readonly latencyMs: number;
  /** Difference of the servers' clock, which their header `Date` shows, from the cloud's (ms). Default 0. */
  readonly clockAheadMs?: number;
  /** Maximum difference of a signature's time from the cloud's clock (ms). AWS: five minutes, S3: 15. */
  readonly maxSkewMs: number;
  /** Maximum number of items per page of lists without `MaxResults`. */
  readonly pageSize: number;
  /** True if calls use up AWS's published token buckets; otherwise only faults throttle. */
  readonly throttles: boolean;
  /** True if RunInstances launches as many instances as the quota allows, if that is at least `MinCount`. */
  readonly partialAtQuota: boolean;
  /** False if the content of objects and blocks is hashed and dropped, for disks larger than the memory. */
  readonly storesContent: boolean;
  /**
   * False if spot instances show neither the client token nor the launch index of their call. AWS documents these
   * fields for instances of RunInstances in general.
   */
  readonly spotShowsCall: boolean;
  /** Types of EventBridge events that arrive in the queue `QUEUE`. */
  readonly queueEvents: readonly string[];
}

export const DEFAULT_SETTINGS: AwsSettings = {
  pendingMs: 0,
  addressMs: 0,
  shuttingDownMs: 0,
  terminatedListedMs: 3_600_000,
  readLagMs: 0,
  resourceMs: 0,
  importMs: 0,
  spotNoticeMs: 120_000,
  latencyMs: 0,
  maxSkewMs: Infinity,
  pageSize: 1000,
  throttles: false,
  partialAtQuota: true,
  storesContent: true,
  spotShowsCall: true,
  queueEvents: [
    'EC2 Spot Instance Interruption Warning',
    'EC2 Instance Rebalance Recommendation',
    'EC2 Instance State-change Notification',
  ],
};

/** The region of the sample content; every other region has networks, types and public images only. */
export const REGION = 'us-east-1';
export const ACCOUNT = '123456789012';
/** Owner of the public images. */
export const AMAZON = '137112412989';
/** An account without relation to ours, which also shares its images with all accounts. */
export const STRANGER = '999988887777';
/** Name of the key pair. */
export const KEY_NAME = 'nodepool';
export const INSTANCE_PROFILE = 'nodepool-nodes';
/** Role that a web identity may assume; see `SimulatedAws.webIdentityToken`. */
export const ROLE_ARN = `arn:aws:iam::${ACCOUNT}:role/nodepool`;
export const BUCKET = 'acme-images';
/** Name of the queue that receives the events of `REGION`. */
export const QUEUE = 'nodepool-interruptions';
export const KMS_KEY_ARN = `arn:aws:kms:${REGION}:${ACCOUNT}:key/7a1c1f5e-5b0e-4b0a-9d5a-2f3f1c0b8e11`;

/** Suffixes of the zones by region. */
export const REGIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['us-east-1', ['a', 'b', 'c', 'd', 'e', 'f']],
  ['us-west-2', ['a', 'b', 'c', 'd']],
  ['eu-central-1', ['a', 'b', 'c']],
]);
