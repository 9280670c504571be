/** Faults of one region. */

import type { Fault } from '@nodepool/driver-example';
import { NO_CLOUD_FAULTS } from '@nodepool/sim';
import { CALM_REGION, type Region } from './region.js';

export interface Disturbance {
  /** Name on the command line. */
  readonly name: string;
  /** Sentence part for the table, e.g. `out of capacity`. */
  readonly title: string;
  readonly begin: (region: Region) => void;
}

/** Share of calls that the region refuses. */
const THROTTLED_SHARE = 0.5;
const SLOW_BOOT_MS = [345_000, 375_000] as const;

function always(fault: Fault) {
  return ({ cloud }: Region): void => cloud.configure({ faults: { ...CALM_REGION.faults, [fault]: 1 } });
}

export const DISTURBANCES: readonly Disturbance[] = [
  {
    name: 'down',
    title: 'down, connections are refused',
    begin: ({ link }: Region): void => {
      link.state = 'cut';
    },
  },
  {
    name: 'silent',
    title: 'down, connections time out',
    begin: ({ link }: Region): void => {
      link.state = 'silent';
    },
  },
  { name: 'capacity', title: 'out of capacity', begin: always('capacity-errors') },
  {
    name: 'slow',
    title: 'booting in 6 minutes',
    begin: ({ cloud }: Region): void => cloud.configure({ bootTimeMs: SLOW_BOOT_MS }),
  },
  {
    name: 'throttled',
    title: 'answering 429 to half of all calls',
    begin: ({ cloudFaults }: Region): void => {
      cloudFaults.throttled = THROTTLED_SHARE;
    },
  },
  { name: 'stuck', title: 'accepting creations and never finishing them', begin: always('stuck-instances') },
  {
    name: 'images',
    title: 'without images',
    begin: ({ cloud }: Region): void => cloud.configure({ publicImages: [] }),
  },
];

/** Ends every disturbance of the region. */
export function calm({ cloud, link, cloudFaults }: Region): void {
  link.state = 'open';
  Object.assign(cloudFaults, NO_CLOUD_FAULTS);
  cloud.configure(CALM_REGION);
}
