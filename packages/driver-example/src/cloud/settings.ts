/** Settings of the example cloud: how fast it is, how much it has, how often it fails. */

/** Least and greatest of a value that is drawn anew each time; both the same: always that. */
export type Range = readonly [least: number, greatest: number];

/** A size that an instance can have. `ram` in MiB. */
export interface InstanceSize {
  readonly name: string;
  readonly cores: number;
  readonly ram: number;
}

/** Amounts that exist at most at the same time; Infinity: unlimited. */
export interface CloudQuota {
  readonly instances: number;
  readonly cores: number;
  readonly ram: number;
}

export const FAULTS = {
  'create-errors': 'An instance is asked for and 500 is answered; nothing is made.',
  'lost-answers': 'A call that changes something takes effect, and its answer never arrives.',
  'failed-instances': 'An instance goes to the state `failed` where it should have finished to boot.',
  'stuck-instances': 'An instance never finishes to boot.',
  'delete-errors': 'A deletion is asked for and 500 is answered; nothing is deleted.',
  'list-errors': 'A listing is answered with 500.',
  'upload-errors': 'The upload of an image breaks off.',
  'capacity-errors': 'The zone has no room for an instance at the moment.',
  'auth-errors': 'The credentials of a call are refused.',
} as const;

export type Fault = keyof typeof FAULTS;

/** Settings of the cloud. Times in milliseconds. */
export interface CloudSettings {
  readonly bootTimeMs: Range;
  readonly deleteTimeMs: Range;
  readonly apiLatencyMs: Range;
  /** How long a change takes until listings show it. */
  readonly listLagMs: Range;
  /** Calls per second that are served, as a bucket of one second's worth; Infinity: all. */
  readonly callsPerSecond: number;
  readonly quota: CloudQuota;
  /** Never empty; the first is the default. */
  readonly zones: readonly string[];
  readonly sizes: readonly InstanceSize[];
  /** Names of the images that everybody may use; undefined: any name is one. */
  readonly publicImages: readonly string[] | undefined;
  /** Most entries of one page of a listing. */
  readonly pageSize: number;
  /** Whether instances listen as ssh servers. */
  readonly ssh: boolean;
  /** Probability of each fault, 0 to 1. */
  readonly faults: Readonly<Record<Fault, number>>;
}

const DEFAULT_SIZES: readonly InstanceSize[] = [
  { name: 'small', cores: 1, ram: 1024 },
  { name: 'medium', cores: 4, ram: 8192 },
  { name: 'large', cores: 8, ram: 16384 },
];

/** A cloud that answers at once, has no limits and never fails. */
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
  ssh: false,
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
