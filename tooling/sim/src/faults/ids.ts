/** Faults of runs whose cloud uses ids again: events after which the id in a record belongs to another instance. */

import { destroyInstance } from './clouds.js';
import type { InjectedFault, WeightedFault } from './fault-context.js';
import { kill, killBetweenSteps, stop } from './launchers.js';

/** Answers that the cloud loses or refuses, as a probability per call. */
const FAULTY_CALLS = { 'lost-answers': 0.3, 'delete-errors': 0.3, 'failed-instances': 0.2 } as const;

const spoilCalls: InjectedFault = ({ world, later }) => {
  world.checker.step('the cloud loses answers, refuses deletions and has failing instances');
  const { faults } = world.calm;
  if (faults !== undefined) world.cloud.configure({ faults: { ...faults, ...FAULTY_CALLS } });
  later(1000, 20_000, () => world.cloud.configure(world.calm));
};

export const ID_FAULTS: readonly WeightedFault[] = [
  [3, kill],
  [3, killBetweenSteps],
  [1, stop],
  [6, destroyInstance],
  [3, spoilCalls],
];
