/** EC2's resources as a region stores them. */

import type { CpuOptions, InstanceMetadataOptionsResponse, RequestLaunchTemplateData } from '@aws-sdk/client-ec2';
import type { InstanceState, Market } from '../api.js';
import type { InstanceType } from './instance-types.js';
import type { Resource } from './table.js';

export interface Vpc extends Resource {
  readonly cidr: string;
}

export interface Subnet extends Resource {
  readonly vpcId: string;
  readonly zone: string;
  /** e.g. `172.31.16.0/20`. */
  readonly cidr: string;
  /** First address as a number. */
  readonly base: number;
  /** Number of addresses that resources can have. */
  capacity: number;
  readonly used: Set<number>;
  /** e.g. `2600:1f18:0:1`. */
  readonly ipv6Prefix: string;
  /** True if interfaces get a public address unless a launch says otherwise. */
  readonly mapsPublicIp: boolean;
}

export interface SecurityGroup extends Resource {
  readonly name: string;
  readonly description: string;
  readonly vpcId: string;
}

export interface KeyPair extends Resource {
  readonly name: string;
  readonly type: string;
  readonly fingerprint: string;
}

export interface NetworkInterface extends Resource {
  readonly subnetId: string;
  readonly groupIds: readonly string[];
  readonly description: string;
  readonly privateIp: string;
  readonly ipv6: readonly string[];
  publicIp: string | undefined;
  attachment:
    | {
        readonly instanceId: string;
        readonly index: number;
        readonly deleteOnTermination: boolean;
        readonly at: number;
      }
    | undefined;
}

export interface Address extends Resource {
  readonly publicIp: string;
  associationId: string | undefined;
  interfaceId: string | undefined;
}

export interface Volume extends Resource {
  readonly zone: string;
  readonly sizeGib: number;
  readonly volumeType: string;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly encrypted: boolean;
  readonly kmsKeyId: string | undefined;
  readonly snapshotId: string | undefined;
  readonly availableAt: number;
  attachment:
    | {
        readonly instanceId: string;
        readonly device: string;
        readonly deleteOnTermination: boolean;
        readonly at: number;
      }
    | undefined;
}

export interface Snapshot extends Resource {
  readonly ownerId: string;
  readonly description: string;
  readonly sizeGib: number;
  readonly volumeId: string;
  readonly encrypted: boolean;
  readonly kmsKeyId: string | undefined;
  state: 'pending' | 'completed' | 'error';
  /** Time of completion; undefined while EBS direct writes it. */
  completedAt: number | undefined;
  stateMessage: string | undefined;
  sha256: string | undefined;
}

/** A volume that an image describes. */
export interface ImageVolume {
  readonly device: string;
  readonly snapshotId: string | undefined;
  readonly sizeGib: number;
  readonly volumeType: string;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly encrypted: boolean;
  readonly deleteOnTermination: boolean;
}

export interface Image extends Resource {
  readonly name: string;
  readonly description: string;
  readonly ownerId: string;
  isPublic: boolean;
  /** Accounts that the image is shared with. */
  readonly sharedWith: Set<string>;
  /** Shown time of creation. */
  readonly creationDate: number;
  readonly architecture: string;
  readonly rootDeviceName: string;
  readonly virtualization: string;
  readonly enaSupport: boolean;
  readonly imdsSupport: string | undefined;
  readonly bootMode: string | undefined;
  readonly platform: 'windows' | undefined;
  readonly volumes: readonly ImageVolume[];
  state: 'pending' | 'available' | 'failed';
  availableAt: number;
  stateMessage: string | undefined;
  readonly copyOf: { readonly imageId: string; readonly region: string } | undefined;
}

export interface Host extends Resource {
  readonly instanceType: InstanceType;
  readonly zone: string;
  readonly autoPlacement: string;
  readonly clientToken: string | undefined;
  readonly availableAt: number;
  releasedAt: number | undefined;
}

export interface TemplateVersion {
  readonly version: number;
  readonly description: string | undefined;
  readonly createdAt: number;
  readonly data: RequestLaunchTemplateData;
}

export interface Template extends Resource {
  readonly name: string;
  readonly versions: TemplateVersion[];
  readonly defaultVersion: number;
}

export interface Instance extends Resource {
  readonly reservationId: string;
  readonly imageId: string;
  readonly type: InstanceType;
  readonly market: Market;
  readonly maxPrice: string | undefined;
  readonly zone: string;
  readonly subnetId: string;
  readonly vpcId: string;
  readonly groupIds: readonly string[];
  readonly keyName: string | undefined;
  readonly clientToken: string;
  readonly launchIndex: number;
  readonly fleetId: string | undefined;
  readonly hostId: string | undefined;
  readonly tenancy: string;
  readonly spotRequestId: string | undefined;
  /** In base64. */
  readonly userData: string | undefined;
  readonly profileArn: string | undefined;
  readonly metadata: InstanceMetadataOptionsResponse;
  readonly cpuOptions: CpuOptions;
  readonly ebsOptimized: boolean;
  readonly monitored: boolean;
  protectedFromTermination: boolean;
  readonly shutdownBehavior: string;
  readonly architecture: string;
  readonly platform: 'windows' | undefined;
  readonly rootDeviceName: string;
  readonly interfaceIds: readonly string[];
  /** Volumes that are or were attached. */
  readonly volumeIds: string[];
  /** States with the times since when they apply, oldest first. */
  readonly history: { readonly at: number; readonly state: InstanceState }[];
  /** Time since when lists show the public address. */
  addressAt: number;
  stateReason: { readonly code: string; readonly message: string } | undefined;
  transition: string;
  /** Set after a notice of interruption. */
  interruptedAt: number | undefined;
}

export interface SpotRequest extends Resource {
  readonly instanceId: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly maxPrice: string | undefined;
  state: 'active' | 'closed' | 'cancelled';
  status: string;
}

export interface Fleet extends Resource {
  readonly clientToken: string | undefined;
  readonly instanceIds: readonly string[];
  readonly total: number;
  state: 'active' | 'deleted';
}

export interface ImportTask extends Resource {
  readonly kind: 'snapshot' | 'image';
  readonly description: string;
  readonly bucket: string;
  readonly key: string;
  readonly format: string;
  readonly startedAt: number;
  readonly endsAt: number;
  status: 'active' | 'completed' | 'deleting' | 'deleted';
  message: string | undefined;
  snapshotId: string | undefined;
  imageId: string | undefined;
  readonly sizeGib: number;
  readonly encrypted: boolean;
}

/** Returns the state of an instance at a time. */
export function stateAt({ history }: Pick<Instance, 'history'>, time: number): InstanceState {
  return (history.findLast(({ at }) => at <= time) ?? history[0])?.state ?? 'pending';
}

/** Returns true if an instance uses capacity and quotas. */
export function isActive({ history }: Pick<Instance, 'history'>): boolean {
  const state = history.at(-1)?.state;
  return state === 'pending' || state === 'running';
}
