/** Faults of static machines. */

import { oneOf } from '../chance.js';
import { WHOLE_SITE } from '../site.js';
import type { InjectedFault, WeightedFault } from './fault-context.js';

const HOSTS = WHOLE_SITE.providers.flatMap(({ pools }) =>
  pools.flatMap(({ machines = [] }) => machines.map(({ name }) => name)),
);

const disturb: InjectedFault = ({ world, random, later }) => {
  const host = oneOf(random, HOSTS) ?? '';
  const state = oneOf(random, ['silent', 'rekeyed'] as const) ?? 'silent';
  world.checker.step(`machine ${host} is ${state}`);
  world.machines.disturb(host, state);
  later(1000, 90_000, () => {
    world.checker.step(`machine ${host} answers again`);
    world.machines.restore(host);
  });
};

export const MACHINE_FAULTS: readonly WeightedFault[] = [[4, disturb]];
