/** Settings and initial content of the simulated cloud. */

export interface CloudSettings {
  /** Time from the end of the creation operation until an instance is RUNNING (ms). */
  readonly bootMs: number;
  /** Time from RUNNING until an instance has its external address (ms). */
  readonly addressMs: number;
  /** Time from the deletion request of an instance until it no longer exists (ms). */
  readonly deleteMs: number;
  /** Duration of every other operation (ms). */
  readonly operationMs: number;
  /** Lag of lists behind creations and deletions (ms). */
  readonly listLagMs: number;
  /** Latency of each call (ms); half precedes its effect, half follows it. */
  readonly latencyMs: number;
  /** Difference of the servers' clock, which their header `Date` shows, from the cloud's (ms). Default 0. */
  readonly clockAheadMs?: number;
  /** Disks of images must have a multiple of this size (bytes). */
  readonly diskGrainBytes: number;
  /** True if the bucket stores other data than it receives. */
  readonly damagesObjects: boolean;
  /** Maximum number of items per page. */
  readonly pageSize: number;
  /** Maximum calls to Compute Engine per second; further ones are refused with 403 `rateLimitExceeded`. */
  readonly callsPerSecond: number;
}

export const DEFAULT_SETTINGS: CloudSettings = {
  bootMs: 0,
  addressMs: 0,
  deleteMs: 0,
  operationMs: 100,
  listLagMs: 0,
  latencyMs: 0,
  diskGrainBytes: 2 ** 30,
  damagesObjects: false,
  pageSize: 500,
  callsPerSecond: Infinity,
};

export const PROJECT = 'acme';
export const BUCKET = 'acme-images';

/** Zones by region. */
export const REGIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['us-central1', ['us-central1-a', 'us-central1-b', 'us-central1-c', 'us-central1-f']],
  ['europe-west1', ['europe-west1-b', 'europe-west1-c', 'europe-west1-d']],
]);

export interface MachineTypeSpec {
  readonly name: string;
  readonly cores: number;
  readonly ramMb: number;
  /** Default: every zone. */
  readonly zones?: readonly string[];
  /** Type and number of built-in accelerators. */
  readonly accelerators?: readonly { readonly guestAcceleratorType: string; readonly guestAcceleratorCount: number }[];
}

const MACHINE_TYPES: readonly MachineTypeSpec[] = [
  { name: 'f1-micro', cores: 1, ramMb: 614 },
  { name: 'e2-micro', cores: 2, ramMb: 1024 },
  { name: 'e2-standard-2', cores: 2, ramMb: 8192 },
  { name: 'n1-standard-1', cores: 1, ramMb: 3840 },
  { name: 'n2-standard-4', cores: 4, ramMb: 16_384 },
  {
    name: 'g4-standard-48',
    cores: 48,
    ramMb: 184_320,
    accelerators: [{ guestAcceleratorType: 'nvidia-rtx-pro-6000', guestAcceleratorCount: 1 }],
  },
  { name: 't2a-standard-1', cores: 1, ramMb: 4096, zones: ['us-central1-a', 'us-central1-b', 'us-central1-f'] },
];

/** Returns the machine types that a zone has. */
export function machineTypesIn(zone: string): readonly MachineTypeSpec[] {
  return MACHINE_TYPES.filter(({ zones = [zone] }) => zones.includes(zone));
}

export const DISK_TYPES: readonly string[] = [
  'pd-standard',
  'pd-balanced',
  'pd-ssd',
  'pd-extreme',
  'hyperdisk-balanced',
];
export const ACCELERATOR_TYPES: readonly string[] = ['nvidia-tesla-t4', 'nvidia-l4'];

/** Network names of all projects. */
export const NETWORKS: readonly string[] = ['default', 'ci', 'shared'];
/** Subnetworks, which exist in every region; `shared` belongs to the host project of a shared VPC. */
export const SUBNETWORKS: readonly { readonly project: string; readonly network: string; readonly name: string }[] = [
  { project: PROJECT, network: 'default', name: 'default' },
  ...['ci', 'ci-a', 'ci-central'].map((name) => ({ project: PROJECT, network: 'ci', name })),
  { project: 'host', network: 'shared', name: 'shared' },
];

/** Limits of each region, by metric. */
export const QUOTAS: Readonly<Record<string, number>> = {
  INSTANCES: 1000,
  CPUS: 4000,
  N2_CPUS: 400,
  PREEMPTIBLE_CPUS: 0,
  DISKS_TOTAL_GB: 100_000,
};

/** Public images by project and family, with the newest image of a family last. */
export const PUBLIC_IMAGES = [
  { project: 'debian-cloud', family: 'debian-12', name: 'debian-12-bookworm-v20240110', gb: 10 },
  { project: 'debian-cloud', family: 'debian-12', name: 'debian-12-bookworm-v20240213', gb: 10 },
  { project: 'windows-cloud', family: 'windows-2022', name: 'windows-server-2022-dc-v20240213', gb: 50 },
  { project: 'acme', family: 'base', name: 'base-1', gb: 10 },
] as const;
