/** Faults of one provider's cloud that do not affect its nodes: no capacity, throttled calls, an unreachable API. */

import type { RandomSource } from '@nodepool/core';
import { between, oneOf } from '../chance.js';
import { REFUSALS } from '../cloud-view.js';
import { CAPACITY_PROVIDER } from '../site.js';
import type { World } from '../world.js';

/** Injects refusals one after another, until the run is over. */
export function refuseInTurn(world: World, random: RandomSource, isOver: () => boolean): void {
  const next = (): void => {
    if (isOver()) return;
    const refusal = oneOf(random, REFUSALS) ?? 'full';
    world.checker.step(`the cloud of ${CAPACITY_PROVIDER} refuses: ${refusal}`);
    world.cloudFaults.refusals.set(CAPACITY_PROVIDER, refusal);
    world.clock.schedule(between(random, 20_000, 250_000), () => {
      world.cloudFaults.refusals.delete(CAPACITY_PROVIDER);
      world.clock.schedule(between(random, 1000, 60_000), next);
    });
  };
  world.clock.schedule(between(random, 1000, 20_000), next);
}
