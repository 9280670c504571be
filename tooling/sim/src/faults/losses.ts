/** Faults of instances of ready nodes only: they are deleted by another program, preempted, or fail. */

import type { RandomSource } from '@nodepool/core';
import { between, oneOf } from '../chance.js';
import type { World } from '../world.js';

/** Deletes or breaks instances of free nodes one after another, until the run is over. */
export function loseInstancesInTurn(world: World, random: RandomSource, isOver: () => boolean): void {
  const next = (): void => {
    if (isOver()) return;
    loseInstance(world, random);
    world.clock.schedule(between(random, 10_000, 90_000), next);
  };
  world.clock.schedule(between(random, 60_000, 90_000), next);
}

function loseInstance({ checker, cloud }: World, random: RandomSource): void {
  const free = [...checker.observed.nodes.values()].filter(
    ({ data, holder }) => data['state'] === 'ready' && data['allocated_to'] === null && holder === undefined,
  );
  const ids = new Set(free.map(({ data }) => data['external_id']));
  const instance = oneOf(
    random,
    cloud.existingInstances().filter(({ id }) => ids.has(id)),
  );
  if (instance === undefined) return;
  const isPreempted = random.next() < 0.4;
  checker.step(`another program ${isPreempted ? 'stops' : 'deletes'} the instance ${instance.id} of a ready node`);
  if (isPreempted) cloud.breakInstance(instance.id);
  else cloud.destroyInstance(instance.id);
}
