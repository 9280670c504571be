/** Settings of a simulated Azure, and its initial content. */

export interface CloudSettings {
  /** Time from an accepted creation of a VM to its end (ms). */
  readonly bootMs: number;
  /** Time from an accepted deletion to its end (ms). */
  readonly deleteMs: number;
  /** Time from the creation of a VM to the assignment of its public addresses (ms). */
  readonly addressMs: number;
  /** Duration of other operations (ms). */
  readonly workMs: number;
  /** Latency of every answer (ms). */
  readonly latencyMs: number;
  /** Difference of the servers' clock, which their header `Date` shows, from the cloud's (ms). Default 0. */
  readonly clockAheadMs?: number;
  /** Maximum number of items per page. */
  readonly pageLimit: number;
  /** True if an empty page precedes each page, as if Azure had filtered all of its items. */
  readonly emptyPages: boolean;
  /** Value of `Retry-After` (seconds). */
  readonly retryAfterSeconds: number;
  /** Lifetime of a token (seconds). */
  readonly tokenSeconds: number;
  /** Maximum calls per minute; further ones are answered with 429. */
  readonly callsPerMinute: number;
  /** Names of VM sizes that the location does not have yet. */
  readonly missingSizes: readonly string[];
}

export const DEFAULT_SETTINGS: CloudSettings = {
  bootMs: 20_000,
  deleteMs: 10_000,
  addressMs: 0,
  workMs: 2000,
  latencyMs: 0,
  pageLimit: 50,
  emptyPages: false,
  retryAfterSeconds: 5,
  tokenSeconds: 3600,
  callsPerMinute: Infinity,
  missingSizes: [],
};

/** Ids and credentials of the sample account. */
export const ACCOUNT = {
  subscriptionId: 'c35cf7df-ed75-4c85-be00-535409a85120',
  tenantId: '2f3d0b52-5c4e-4b61-9e1c-0d8d5f3c6a11',
  clientId: 'a5f1f3a2-7f5b-4f0e-a0fb-6c8b7c0f7e22',
  clientSecret: 'the secret of the simulation',
} as const;

/** Locations with their availability zones. */
export const LOCATIONS: readonly { readonly name: string; readonly zones: readonly string[] }[] = [
  { name: 'centralus', zones: ['1', '2', '3'] },
  { name: 'eastus', zones: ['1', '2', '3'] },
  { name: 'northcentralus', zones: [] },
];

export const SAMPLE = {
  location: 'centralus',
  resourceGroup: 'nodepool',
  network: 'NodePool',
  subnet: 'default',
} as const;

/** A VM size. */
export interface SampleSize {
  readonly name: string;
  readonly family: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Supported Hyper-V generations. */
  readonly generations: readonly string[];
  /** Cache size for ephemeral disks in GB; 0 if there is none. */
  readonly cacheGb: number;
  /** True if spot VMs can have this size. */
  readonly spot: boolean;
  readonly restricted?: boolean;
}

const BOTH_GENERATIONS = ['V1', 'V2'] as const;

export const SAMPLE_SIZES: readonly SampleSize[] = [
  {
    name: 'Standard_B1ls',
    family: 'standardBSFamily',
    cores: 1,
    memoryGb: 0.5,
    generations: BOTH_GENERATIONS,
    cacheGb: 0,
    spot: false,
  },
  {
    name: 'Standard_B2s',
    family: 'standardBSFamily',
    cores: 2,
    memoryGb: 4,
    generations: BOTH_GENERATIONS,
    cacheGb: 0,
    spot: false,
  },
  {
    name: 'Standard_A2_v2',
    family: 'standardAv2Family',
    cores: 2,
    memoryGb: 4,
    generations: ['V1'],
    cacheGb: 0,
    spot: true,
  },
  {
    name: 'Standard_D4s_v5',
    family: 'standardDSv5Family',
    cores: 4,
    memoryGb: 16,
    generations: BOTH_GENERATIONS,
    cacheGb: 0,
    spot: true,
  },
  {
    name: 'Standard_D4ds_v4',
    family: 'standardDDSv4Family',
    cores: 4,
    memoryGb: 16,
    generations: BOTH_GENERATIONS,
    cacheGb: 100,
    spot: true,
  },
  {
    name: 'Standard_M128s',
    family: 'standardMSFamily',
    cores: 128,
    memoryGb: 2048,
    generations: BOTH_GENERATIONS,
    cacheGb: 4096,
    spot: true,
    restricted: true,
  },
];

/** An image outside of the subscription's resource groups. */
export interface SampleImage {
  readonly generation: 'V1' | 'V2';
  readonly os: 'Linux' | 'Windows';
  readonly gb: number;
  readonly trustedLaunch: boolean;
  readonly versions: readonly string[];
}

/** Images of the marketplace by `publisher:offer:sku`. */
export const PLATFORM_IMAGES: Readonly<Record<string, SampleImage>> = {
  'debian:debian-12:12': { generation: 'V1', os: 'Linux', gb: 30, trustedLaunch: false, versions: ['0.20250428.2096'] },
  'debian:debian-12:12-gen2': {
    generation: 'V2',
    os: 'Linux',
    gb: 30,
    trustedLaunch: true,
    versions: ['0.20250428.2096'],
  },
  'microsoftwindowsserver:windowsserver:2022-datacenter-g2': {
    ...{ generation: 'V2', os: 'Windows', gb: 127, trustedLaunch: true, versions: ['20348.3692.250509'] },
  },
};

/** The only gallery, owned by the subscription and shared with the community and the subscription. */
export const SAMPLE_GALLERY = { name: 'ci-3f8d2a', image: 'debian' } as const;
export const GALLERY_IMAGE: SampleImage = {
  ...{ generation: 'V2', os: 'Linux', gb: 30, trustedLaunch: true, versions: ['1.0.0', '1.2.0'] },
};

/** Limits by usage name. */
export const SAMPLE_LIMITS: Readonly<Record<string, number>> = {
  virtualMachines: 25_000,
  cores: 10_000,
  standardBSFamily: 10_000,
  standardDSv5Family: 100,
  standardDDSv4Family: 100,
  standardAv2Family: 100,
  lowPriorityCores: 100,
};
