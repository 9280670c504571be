/** State that every part of the simulated cloud shares. */

import type { RandomSource } from '@nodepool/core';
import type { CloudState } from '@nodepool/simulated-cloud';
import type { CloudSettings } from './settings.js';

export type GceState = CloudState<CloudSettings>;

/** Returns the address of a resource of Compute Engine. */
export function linkTo(state: GceState, path: string): string {
  return `${state.url}/compute/v1/${path}`;
}

/** Numeric ids, as texts. */
export function newId(random: RandomSource): string {
  return String(1 + Math.floor(random.next() * Number.MAX_SAFE_INTEGER));
}
