/** Where trouble is made. */

import type { RandomSource } from '@nodepool/core';
import type { LauncherProcess } from '../launcher-process.js';
import type { Site } from '../site.js';
import type { World } from '../world.js';

export interface Stage {
  readonly world: World;
  readonly random: RandomSource;
  /** A running launcher, by chance. */
  readonly victim: () => LauncherProcess | undefined;
  /** Does something after a while, unless all trouble is over by then. Times in milliseconds. */
  readonly later: (least: number, greatest: number, what: () => void) => void;
  /** Starts one more launcher. */
  readonly start: (site?: Site) => void;
  /** Has a launcher go on with another configuration. */
  readonly configure: (launcher: LauncherProcess, site: Site) => void;
}

/** Something that goes wrong. */
export type Trouble = (stage: Stage) => void;

/** How often it does, in relation to the others. */
export type WeightedTrouble = readonly [weight: number, trouble: Trouble];
