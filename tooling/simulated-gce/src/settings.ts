/** How the simulated cloud behaves, and what is in it when it starts. */

export interface CloudSettings {
  /** From the end of the creation's operation until an instance is RUNNING, milliseconds. */
  readonly bootMs: number;
  /** From the start of an instance's run until it has its external address, milliseconds. */
  readonly addressMs: number;
  /** From the deletion of an instance until it is gone. */
  readonly deleteMs: number;
  /** How long every other operation takes. */
  readonly operationMs: number;
  /** For so long, lists do not know what was made, and still know what is gone. */
  readonly listLagMs: number;
  /** Half of it before the effect of each call, half after. */
  readonly latencyMs: number;
  /** Entries of a page at most. */
  readonly pageSize: number;
  /** Calls to Compute Engine in any second; more are refused with 403 `rateLimitExceeded`. */
  readonly callsPerSecond: number;
}

export const DEFAULT_SETTINGS: CloudSettings = {
  bootMs: 0,
  addressMs: 0,
  deleteMs: 0,
  operationMs: 100,
  listLagMs: 0,
  latencyMs: 0,
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
}

export const MACHINE_TYPES: readonly MachineTypeSpec[] = [
  { name: 'f1-micro', cores: 1, ramMb: 614 },
  { name: 'e2-micro', cores: 2, ramMb: 1024 },
  { name: 'e2-standard-2', cores: 2, ramMb: 8192 },
  { name: 'n1-standard-1', cores: 1, ramMb: 3840 },
  { name: 'n2-standard-4', cores: 4, ramMb: 16_384 },
];

export const DISK_TYPES: readonly string[] = [
  'pd-standard',
  'pd-balanced',
  'pd-ssd',
  'pd-extreme',
  'hyperdisk-balanced',
];
export const ACCELERATOR_TYPES: readonly string[] = ['nvidia-tesla-t4', 'nvidia-l4'];

/** Names of networks, of any project. */
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

/** Images of others, by project and family, the newest of a family last. */
export const PUBLIC_IMAGES = [
  { project: 'debian-cloud', family: 'debian-12', name: 'debian-12-bookworm-v20240110', gb: 10 },
  { project: 'debian-cloud', family: 'debian-12', name: 'debian-12-bookworm-v20240213', gb: 10 },
  { project: 'windows-cloud', family: 'windows-2022', name: 'windows-server-2022-dc-v20240213', gb: 50 },
  { project: 'acme', family: 'base', name: 'base-1', gb: 10 },
] as const;
