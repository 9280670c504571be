/** The environment in which faults act. */

import type { RandomSource } from '@nodepool/core';
import type { LauncherProcess } from '../launcher-process.js';
import type { Site } from '../site.js';
import type { World } from '../world.js';

export interface FaultContext {
  readonly world: World;
  readonly random: RandomSource;
  /** Returns a random running launcher. */
  readonly victim: () => LauncherProcess | undefined;
  /** Schedules an action within the given range (ms), unless all faults have ended by then. */
  readonly later: (least: number, greatest: number, what: () => void) => void;
  /** Starts an additional launcher. */
  readonly start: (site?: Site) => void;
  /** Applies another configuration to a launcher. */
  readonly configure: (launcher: LauncherProcess, site: Site) => void;
}

/** A fault. */
export type InjectedFault = (context: FaultContext) => void;

/** A fault and its relative frequency. */
export type WeightedFault = readonly [weight: number, fault: InjectedFault];
