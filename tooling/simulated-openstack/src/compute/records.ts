/** What nova keeps. */

import type { Timer } from '@nodepool/core';
import type { ServerFate } from '../faults.js';
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

export type ServerStatus = 'BUILD' | 'ACTIVE' | 'SHUTOFF' | 'ERROR';

/** A volume that a server is to boot from. */
export interface BootVolume {
  /** Made from this image, or this one that is there. */
  readonly source: { readonly imageId: string; readonly sizeGb: number } | { readonly volumeId: string };
  readonly deleteOnTermination: boolean;
}

/** What a server is to be. */
export interface ServerSpec {
  readonly name: string;
  readonly flavor: Flavor;
  /** Null: it boots from a volume. */
  readonly imageId: string | null;
  readonly bootVolume: BootVolume | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly keyName: string | null;
  readonly userData: string | null;
  readonly configDrive: boolean;
  readonly availabilityZone: string | null;
  /** Names or ids, as they were asked for. */
  readonly securityGroups: readonly string[];
  readonly securityGroupIds: readonly string[];
  /** Networks in which it gets a port, and ports that there are. */
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
  /** `scheduling`, `spawning`, `deleting`, …; null: nothing is being done to it. */
  taskState: string | null;
  fault: Fault | null;
  /** Empty: it is on no host. */
  hostId: string;
  updatedAt: number;
  launchedAt: number | null;
  terminatedAt: number | null;
  /** Ids of attached volumes, and whether each goes with the server. */
  readonly volumes: Map<string, boolean>;
  readonly fates: readonly ServerFate[];
  /** How many of its deletions went wrong. */
  failedDeletions: number;
  timer: Timer | undefined;
}
