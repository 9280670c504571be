/** How the simulated cloud behaves, and what the sample cloud allows. */

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
  /** From the creation of a server until it is ACTIVE, milliseconds. */
  readonly bootMs: number;
  /** From a server's DELETE until it is gone, milliseconds. */
  readonly deleteMs: number;
  /** Of every call, milliseconds; half of it before the effect. */
  readonly latencyMs: number;
  /** How long a token is valid, milliseconds. */
  readonly tokenTtlMs: number;
  /** Most entries of one page: nova's and cinder's `max_limit`, glance's `api_limit_max`, neutron's `pagination_max_limit`. */
  readonly pageLimit: number;
  /** Entries of a page of images when the caller does not say: glance's `limit_param_default`. */
  readonly imagePageSize: number;
  /** Newest microversion that nova knows. */
  readonly microversion: string;
  /** Largest image whose data can be read back, bytes; those of larger ones are checked and dropped. */
  readonly keepImageBytes: number;
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

/** Quota of a project without limits of its own: the defaults of nova, neutron and cinder. */
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

/** Of the sample cloud's projects. */
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

/** A disk larger than this finds no host. GiB. */
export const LARGEST_DISK = 6_000_000;

export const SAMPLE_FLAVORS: readonly FlavorSpec[] = [
  { name: 'm1.tiny', vcpus: 1, ram: 512, disk: 1 },
  { name: 'm1.small', vcpus: 1, ram: 2048, disk: 20 },
  { name: 'm1.medium', vcpus: 2, ram: 4096, disk: 40 },
  { name: 'm1.large', vcpus: 4, ram: 8192, disk: 80 },
  { name: 'm1.nohost', vcpus: 1, ram: 512, disk: 100_000_000 },
];

/** Every password and secret of the sample cloud. */
export const SAMPLE_PASSWORD = 'ostack';
export const REGION = 'RegionOne';
export const ZONE = 'nova';
