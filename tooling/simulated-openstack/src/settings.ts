/** Settings of the simulated cloud and quotas of the sample cloud. */

/** Amounts by resource; -1 is unlimited. Names are those of nova, neutron and cinder. */
export interface Quota {
  readonly instances: number;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  readonly key_pairs: number;
  readonly network: number;
  readonly port: number;
  readonly floatingip: number;
  readonly security_group: number;
  readonly volumes: number;
  /** GiB. */
  readonly gigabytes: number;
}

export interface CloudSettings {
  /** Time from the creation of a server until it is ACTIVE (ms). */
  readonly bootMs: number;
  /** Time from a server's DELETE until it no longer exists (ms). */
  readonly deleteMs: number;
  /** Latency of each call (ms); half of it precedes the effect. */
  readonly latencyMs: number;
  /** Difference of the servers' clock, which their header `Date` shows, from the cloud's (ms). Default 0. */
  readonly clockAheadMs?: number;
  /** Lifetime of a token (ms). */
  readonly tokenTtlMs: number;
  /**
   * Maximum page size: `max_limit` of nova and cinder, `api_limit_max` of glance, `pagination_max_limit` of neutron.
   */
  readonly pageLimit: number;
  /** Default page size of image listings: glance's `limit_param_default`. */
  readonly imagePageSize: number;
  /** Newest microversion of nova. */
  readonly microversion: string;
  /** Maximum size of image data that can be read back (bytes). Larger data is verified and dropped. */
  readonly keepImageBytes: number;
  /** True if images get other data than was sent, and no MD5, as in a cloud that allows SHA-2 only. */
  readonly damagesImages?: boolean;
}

export const DEFAULT_SETTINGS: CloudSettings = {
  bootMs: 0,
  deleteMs: 0,
  latencyMs: 0,
  tokenTtlMs: 3_600_000,
  pageLimit: 1000,
  imagePageSize: 25,
  microversion: '2.93',
  keepImageBytes: 2 ** 20,
};

/** Quota of projects without their own: the defaults of nova, neutron and cinder. */
const DEFAULT_QUOTA: Quota = {
  instances: 10,
  cores: 20,
  ram: 51_200,
  key_pairs: 100,
  network: 100,
  port: 1000,
  floatingip: 50,
  security_group: 10,
  volumes: 10,
  gigabytes: 1000,
};

/** Quotas of the sample cloud's projects. */
export const SAMPLE_QUOTAS: Readonly<Record<string, Quota>> = {
  admin: DEFAULT_QUOTA,
  demo: {
    instances: 1000,
    cores: 4000,
    ram: 4_194_304,
    key_pairs: 1000,
    network: 100,
    port: 5000,
    floatingip: 500,
    security_group: 500,
    volumes: 1000,
    gigabytes: 1_000_000,
  },
  limited: {
    instances: 3,
    cores: 3,
    ram: 4096,
    key_pairs: 5,
    network: 3,
    port: 10,
    floatingip: 2,
    security_group: 3,
    volumes: 2,
    gigabytes: 5,
  },
};

export interface FlavorSpec {
  readonly name: string;
  readonly vcpus: number;
  /** MiB. */
  readonly ram: number;
  /** GiB. */
  readonly disk: number;
}

/** Maximum disk size for which a host exists (GiB). */
export const LARGEST_DISK = 6_000_000;

export const SAMPLE_FLAVORS: readonly FlavorSpec[] = [
  { name: 'm1.tiny', vcpus: 1, ram: 512, disk: 1 },
  { name: 'm1.small', vcpus: 1, ram: 2048, disk: 20 },
  { name: 'm1.medium', vcpus: 2, ram: 4096, disk: 40 },
  { name: 'm1.large', vcpus: 4, ram: 8192, disk: 80 },
  { name: 'm1.nohost', vcpus: 1, ram: 512, disk: 100_000_000 },
];

/** Password and secret of all accounts of the sample cloud. */
export const SAMPLE_PASSWORD = 'ostack';
export const REGION = 'RegionOne';
export const ZONE = 'nova';
