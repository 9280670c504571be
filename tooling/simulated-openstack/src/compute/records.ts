/** Records of nova. */

import type { Timer } from '@nodepool/core';
import type { ServerBehaviour } from '../faults.js';
import type { FlavorSpec } from '../settings.js';
import type { Owned } from '../table.js';

export interface Flavor extends FlavorSpec {
  readonly id: string;
}

export interface KeyPair {
  readonly name: string;
  readonly publicKey: string;
  readonly fingerprint: string;
  readonly userId: string;
}

export interface Fault {
  readonly code: number;
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export type ServerStatus = 'BUILD' | 'ACTIVE' | 'SHUTOFF' | 'SHELVED_OFFLOADED' | 'ERROR';

/** A boot volume of a server. */
export interface BootVolume {
  /** An image to create the volume from, or an existing volume. */
  readonly source: { readonly imageId: string; readonly sizeGb: number } | { readonly volumeId: string };
  readonly deleteOnTermination: boolean;
}

/** Specification of a server. */
export interface ServerSpec {
  readonly name: string;
  readonly flavor: Flavor;
  /** Null if the server boots from a volume. */
  readonly imageId: string | null;
  readonly bootVolume: BootVolume | null;
  /** Properties of the image at the creation of the server, which nova copies into the server's snapshots. */
  readonly imageProperties: ReadonlyMap<string, string>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly keyName: string | null;
  readonly userData: string | null;
  readonly configDrive: boolean;
  readonly availabilityZone: string | null;
  /** Names or ids, as requested. */
  readonly securityGroups: readonly string[];
  readonly securityGroupIds: readonly string[];
  /** Networks in which the server gets a port, and existing ports. */
  readonly interfaces: readonly ({ readonly networkId: string } | { readonly portId: string })[];
  readonly tags: readonly string[];
  readonly description: string | null;
  readonly minCount: number;
}

export interface ServerRecord extends Owned {
  readonly userId: string;
  readonly name: string;
  readonly spec: ServerSpec;
  metadata: Readonly<Record<string, string>>;
  status: ServerStatus;
  /** `scheduling`, `spawning`, `deleting`, …; null if there is no task. */
  taskState: string | null;
  fault: Fault | null;
  /** Empty if the server is on no host. */
  hostId: string;
  updatedAt: number;
  launchedAt: number | null;
  terminatedAt: number | null;
  /** Ids of attached volumes; the value is true if the volume is deleted with the server. */
  readonly volumes: Map<string, boolean>;
  readonly behaviours: readonly ServerBehaviour[];
  /** Image of the disk while the server is shelved. */
  shelvedImageId: string | undefined;
  /** Number of failed deletions. */
  failedDeletions: number;
  timer: Timer | undefined;
}
