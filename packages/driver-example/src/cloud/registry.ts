/** The example clouds in this process. Each outlives the providers that use it, as a real cloud does. */

import type { Clock, RandomSource } from '@nodepool/core';
import { ExampleCloud } from './cloud.js';
import type { CloudSettings } from './settings.js';

/** The clouds of each clock, so that every simulation has its own. */
const clouds = new WeakMap<Clock, Map<string, ExampleCloud>>();

/** Returns the cloud of that name, creating it at the first call, and applies the settings. */
export function localCloud(
  name: string,
  { clock, random }: { readonly clock: Clock; readonly random: RandomSource },
  settings: CloudSettings,
): ExampleCloud {
  let byName = clouds.get(clock);
  if (byName === undefined) {
    byName = new Map();
    clouds.set(clock, byName);
  }
  let cloud = byName.get(name);
  if (cloud === undefined) {
    cloud = new ExampleCloud({ clock, random, settings });
    byName.set(name, cloud);
  } else {
    cloud.configure(settings);
  }
  return cloud;
}
