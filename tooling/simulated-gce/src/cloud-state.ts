/** State that all parts of the simulated cloud share. */

import type { RandomSource } from '@nodepool/core';
import type { CloudState } from '@nodepool/simulated-cloud';
import type { CloudSettings } from './settings.js';

export type GceState = CloudState<CloudSettings>;

/** Returns the URL of a Compute Engine resource. */
export function linkTo(state: GceState, path: string): string {
  return `${state.url}/compute/v1/${path}`;
}

/** Returns a numeric id as a string. */
export function newId(random: RandomSource): string {
  return String(1 + Math.floor(random.next() * Number.MAX_SAFE_INTEGER));
}
