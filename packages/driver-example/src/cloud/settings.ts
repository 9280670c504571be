/** Settings of the example cloud: its speed, capacity and faults. */

/** Minimum and maximum of a value that is drawn anew each time. Equal bounds yield a constant. */
export type Range = readonly [least: number, greatest: number];

/** A size of instances; `ram` in MiB. */
export interface InstanceSize {
  readonly name: string;
  readonly cores: number;
  readonly ram: number;
}

/** Maximum amounts in use at the same time; `Infinity` for no limit. */
export interface CloudQuota {
  readonly instances: number;
  readonly cores: number;
  readonly ram: number;
}

export const FAULTS = {
  'create-errors': 'A creation is answered with 500 and has no effect.',
  'lost-answers': 'A creation or deletion takes effect, but its answer is lost.',
  'failed-instances': 'An instance enters the state `failed` at the end of its boot time.',
  'stuck-instances': 'An instance never finishes booting.',
  'delete-errors': 'A deletion is answered with 500 and has no effect.',
  'list-errors': 'A listing is answered with 500.',
  'upload-errors': 'The connection of an image upload breaks.',
  'capacity-errors': 'The zone has no capacity for a new instance.',
  'auth-errors': 'A call is answered with 401.',
} as const;

export type Fault = keyof typeof FAULTS;

/** Settings of the cloud. Times in milliseconds. */
export interface CloudSettings {
  readonly bootTimeMs: Range;
  readonly deleteTimeMs: Range;
  readonly apiLatencyMs: Range;
  /** Time until listings show a change. */
  readonly listLagMs: Range;
  /** Calls served per second, with bursts of up to one second's worth; `Infinity` for no limit. */
  readonly callsPerSecond: number;
  readonly quota: CloudQuota;
  /** Never empty; the first zone is the default. */
  readonly zones: readonly string[];
  readonly sizes: readonly InstanceSize[];
  /** Names of the public images; undefined if any name is valid. */
  readonly publicImages: readonly string[] | undefined;
  /** Maximum number of entries in one page of a listing. */
  readonly pageSize: number;
  /** True if new instances have the ids of deleted ones, as in clouds that number instances from the lowest free id. */
  readonly reusesIds: boolean;
  /** True if instances listen as ssh servers. */
  readonly ssh: boolean;
  /** File of the public keys that may log in and run commands on this machine; if undefined, no login is possible. */
  readonly authorizedKeys: string | undefined;
  /** Probability of each fault, 0 to 1. */
  readonly faults: Readonly<Record<Fault, number>>;
}

const DEFAULT_SIZES: readonly InstanceSize[] = [
  { name: 'small', cores: 1, ram: 1024 },
  { name: 'medium', cores: 4, ram: 8192 },
  { name: 'large', cores: 8, ram: 16384 },
];

/** Settings of a cloud that responds immediately, has no limits and never fails. */
export const DEFAULT_SETTINGS: CloudSettings = {
  bootTimeMs: [0, 0],
  deleteTimeMs: [0, 0],
  apiLatencyMs: [0, 0],
  listLagMs: [0, 0],
  callsPerSecond: Infinity,
  quota: { instances: Infinity, cores: Infinity, ram: Infinity },
  zones: ['zone-1'],
  sizes: DEFAULT_SIZES,
  publicImages: undefined,
  pageSize: 500,
  reusesIds: false,
  ssh: false,
  authorizedKeys: undefined,
  faults: {
    'create-errors': 0,
    'lost-answers': 0,
    'failed-instances': 0,
    'stuck-instances': 0,
    'delete-errors': 0,
    'list-errors': 0,
    'upload-errors': 0,
    'capacity-errors': 0,
    'auth-errors': 0,
  },
};
