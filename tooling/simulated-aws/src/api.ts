/** The interface of the simulated cloud for tests, beside its API. */

import type { CallLog, CloudConnections, FaultPlan, SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import type { AwsApiCall, AwsFault } from './faults.js';
import type { AwsSettings } from './settings.js';

export type SimulatedAwsOptions = SimulatedCloudOptions<AwsSettings>;

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Temporary credentials have one. */
  readonly sessionToken?: string;
}

export type Tags = Readonly<Record<string, string>>;

/** A resource as it is now, even if lists do not show it yet. */
export interface InspectedResource {
  readonly region: string;
  readonly id: string;
  readonly tags: Tags;
}

export type InstanceState = 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped';
export type Market = 'on-demand' | 'spot';

export interface InspectedInstance extends InspectedResource {
  readonly state: InstanceState;
  readonly instanceType: string;
  readonly zone: string;
  readonly market: Market;
  readonly imageId: string;
  readonly subnetId: string;
  readonly securityGroupIds: readonly string[];
  readonly keyName: string | undefined;
  readonly clientToken: string;
  readonly launchIndex: number;
  readonly fleetId: string | undefined;
  readonly hostId: string | undefined;
  /** Text of the user data. */
  readonly userData: string | undefined;
  readonly instanceProfile: string | undefined;
  readonly metadataTokens: string;
  readonly ebsOptimized: boolean;
  readonly privateIp: string;
  readonly publicIp: string | undefined;
  readonly ipv6: readonly string[];
  readonly volumeIds: readonly string[];
  readonly networkInterfaceIds: readonly string[];
  /** e.g. `Server.SpotInstanceTermination`. */
  readonly stateReason: string | undefined;
}

export interface InspectedVolume extends InspectedResource {
  readonly state: string;
  readonly sizeGib: number;
  readonly volumeType: string;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly encrypted: boolean;
  readonly kmsKeyId: string | undefined;
  readonly instanceId: string | undefined;
  readonly deleteOnTermination: boolean;
}

export interface InspectedInterface extends InspectedResource {
  readonly subnetId: string;
  readonly instanceId: string | undefined;
  readonly deleteOnTermination: boolean;
}

export interface InspectedAddress extends InspectedResource {
  readonly publicIp: string;
  readonly instanceId: string | undefined;
}

export interface InspectedHost extends InspectedResource {
  readonly state: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly instanceIds: readonly string[];
}

export interface InspectedTemplate extends InspectedResource {
  readonly name: string;
}

export interface InspectedImage extends InspectedResource {
  readonly state: string;
  readonly name: string;
  readonly ownerId: string;
  readonly isPublic: boolean;
  readonly architecture: string;
  readonly enaSupport: boolean;
  readonly imdsSupport: string | undefined;
  readonly rootDeviceName: string;
  readonly snapshotIds: readonly string[];
  readonly rootVolume: {
    readonly sizeGib: number;
    readonly volumeType: string;
    readonly iops: number | undefined;
    readonly throughput: number | undefined;
  };
  /** The image that it is a copy of. */
  readonly copyOf: { readonly imageId: string; readonly region: string } | undefined;
}

export interface InspectedSnapshot extends InspectedResource {
  readonly state: string;
  readonly sizeGib: number;
  readonly description: string;
  readonly encrypted: boolean;
  /**
   * SHA-256 of the imported or written disk without trailing zeros, in hexadecimal digits; undefined if the setting
   * `storesContent` is false.
   */
  readonly sha256: string | undefined;
}

export interface InspectedImportTask extends InspectedResource {
  readonly state: string;
  readonly kind: 'snapshot' | 'image';
  readonly bucket: string;
  readonly key: string;
  readonly message: string;
}

export interface InspectedObject {
  readonly region: string;
  readonly bucket: string;
  readonly key: string;
  readonly size: number;
  readonly tags: Tags;
  /** SHA-256 in hexadecimal digits; undefined for an object of parts if the setting `storesContent` is false. */
  readonly sha256: string | undefined;
}

export interface InspectedUpload {
  readonly bucket: string;
  readonly key: string;
  readonly uploadId: string;
  readonly parts: number;
}

/** The cloud's content, of all regions. */
export interface Inspector {
  /** Instances in all states, for as long as lists show them. */
  instances(): readonly InspectedInstance[];
  volumes(): readonly InspectedVolume[];
  networkInterfaces(): readonly InspectedInterface[];
  addresses(): readonly InspectedAddress[];
  hosts(): readonly InspectedHost[];
  launchTemplates(): readonly InspectedTemplate[];
  /** Images of our account. */
  images(): readonly InspectedImage[];
  /** Snapshots of our account. */
  snapshots(): readonly InspectedSnapshot[];
  importTasks(): readonly InspectedImportTask[];
  objects(): readonly InspectedObject[];
  /** Multipart uploads that are neither complete nor aborted. */
  uploads(): readonly InspectedUpload[];
  /** Number of messages in the queue, received ones included. */
  messages(): number;
}

/** Instances that a rule of capacity or offering is about; absent fields match everything. */
export interface InstanceMatch {
  readonly instanceType?: string;
  readonly market?: Market;
  /** e.g. `us-east-1a`. */
  readonly zone?: string;
}

export interface CapacityPeriod {
  readonly from?: number;
  readonly until?: number;
}

export interface CapacityLimit {
  /** Ends the limit. Idempotent. */
  remove(): void;
}

/** Capacity, offerings and prices. Limits are cumulative: an instance must fit within each that matches it. */
export interface Capacity {
  /**
   * Limits the number of matching instances that exist at once; 0 means that there is no capacity. With `period`, the
   * limit applies from and until these times of the clock (ms since the epoch).
   */
  limit(match: InstanceMatch, count: number, period?: CapacityPeriod): CapacityLimit;
  /** Withdraws a type from a zone: it is `Unsupported` there, and no offering names it. */
  withdraw(instanceType: string, zone: string): void;
  /** Sets the spot price in USD per hour. Default: 0.3 of the on-demand price. */
  setSpotPrice(instanceType: string, zone: string, price: number): void;
  /** Limits the number of free addresses of a subnet to at most `count` more than are used now. */
  setFreeAddresses(subnetId: string, count: number): void;
}

/** Rights of our account's users and roles, as IAM policies grant them. */
export interface Permissions {
  /** Allows these actions only, e.g. `ec2:Describe*`; undefined allows all. */
  allowOnly(actions: readonly string[] | undefined): void;
  deny(...actions: readonly string[]): void;
  /** Ends the denials. */
  allow(...actions: readonly string[]): void;
  /** Returns the actions that the calls since the last reset needed, sorted, e.g. `ec2:RunInstances`. */
  used(): readonly string[];
  resetUsed(): void;
}

export interface ImageSpec {
  readonly name: string;
  /** Default: our account. */
  readonly ownerId?: string;
  /** Default: false. */
  readonly isPublic?: boolean;
  /** Default: now. */
  readonly createdAt?: number;
  /** Default: `x86_64`. */
  readonly architecture?: 'x86_64' | 'arm64' | 'x86_64_mac' | 'arm64_mac';
  /** Default: `/dev/xvda`. */
  readonly rootDeviceName?: string;
  /** Size of the root volume in GiB. Default: 8. */
  readonly sizeGib?: number;
  readonly enaSupport?: boolean;
  /** Further volumes of the image by device name, in GiB. */
  readonly moreVolumes?: Readonly<Record<string, number>>;
  readonly platform?: 'windows';
  readonly tags?: Tags;
}

/** A running simulated AWS. All services and regions have the same address. */
export interface SimulatedAws {
  /** e.g. `http://127.0.0.1:20345`. */
  readonly url: string;
  /** Permanent credentials of a user of our account. */
  readonly credentials: AwsCredentials;
  /** Ids of the subnets of the default network in `REGION`, by zone. */
  readonly subnets: Readonly<Record<string, string>>;
  /** Id of the default security group in `REGION`, and of a second one. */
  readonly securityGroups: readonly [string, string];
  /** Id of the newest public image of Amazon in `REGION`, whose root device is `/dev/xvda`. */
  readonly publicImageId: string;
  /** URL of the queue `QUEUE`, which receives the events of `REGION`. */
  readonly queueUrl: string;
  readonly faults: FaultPlan<AwsFault, AwsApiCall>;
  /** Names of the operations by service, e.g. `RunInstances` of `ec2`. */
  readonly operations: Readonly<Record<string, readonly string[]>>;
  /** Calls with operations such as `ec2.RunInstances`, `s3.PutObject`, `sqs.ReceiveMessage`. */
  readonly calls: CallLog<AwsApiCall>;
  /** Refuses connections, and accepts them again. */
  readonly connections: CloudConnections;
  readonly inspect: Inspector;
  readonly capacity: Capacity;
  readonly permissions: Permissions;
  /** Changes settings from now on. */
  configure(settings: Partial<AwsSettings>): void;
  /** Sets a quota by its code, e.g. `L-1216C47A`. Default region: `REGION`. */
  setQuota(code: string, value: number, region?: string): void;

  /** Issues temporary credentials; they expire after `lifetimeMs`. */
  issueCredentials(lifetimeMs: number): AwsCredentials;
  /** Expires all temporary credentials. */
  expireCredentials(): void;
  /** Makes the permanent credentials invalid, or valid again. */
  revokeCredentials(isRevoked: boolean): void;
  /** Returns a token with which `AssumeRoleWithWebIdentity` gives credentials of `ROLE_ARN`. */
  webIdentityToken(): string;
  /** Creates or deletes the role `vmimport`, which imports need. It exists at the start. */
  setImportRole(exists: boolean): void;

  /**
   * Interrupts a spot instance: sends the notice to the queue, and terminates the instance after `spotNoticeMs`. With
   * `rebalance`, a recommendation to rebalance precedes the notice. Throws if there is no such spot instance.
   */
  interruptSpot(instanceId: string, options?: { readonly rebalance?: boolean }): void;
  /** Sends a recommendation to rebalance without an interruption. */
  recommendRebalance(instanceId: string): void;
  /** Terminates or stops an instance as its own shutdown, an operator or AWS does. */
  endInstance(instanceId: string, state: 'terminated' | 'stopped', reason: string): void;
  /** Removes an instance without a trace, even from lists. */
  forgetInstance(instanceId: string): void;

  /** Adds an image, and returns its id. Default region: `REGION`. */
  addImage(spec: ImageSpec, region?: string): string;
  /**
   * Copies a resource with its tags as another person does, and returns the copy's id. `tags` replaces tags; an
   * undefined value removes one. Supports instances, volumes, interfaces, addresses, hosts, templates, images and
   * snapshots.
   */
  duplicate(id: string, tags?: Readonly<Record<string, string | undefined>>): string;
  /** Stores an object in `BUCKET`. */
  putObject(key: string, content: Uint8Array, tags?: Tags): void;
  /** Sends a message to the queue `QUEUE`. */
  sendMessage(body: string): void;
  /** Closes all connections. Idempotent. */
  close(): Promise<void>;
}
