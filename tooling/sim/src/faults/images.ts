/** Faults of runs with images: launchers and builders die at any step, sessions expire, and some launches fail. */

import { between, oneOf } from '../chance.js';
import type { BuilderProcess } from '../images/builder-process.js';
import type { FaultContext, InjectedFault, WeightedFault } from './fault-context.js';
import { disconnect, expire, kill, killBetweenSteps, lag, loseWrite, partition, pause, stop } from './launchers.js';

/** Returns a fault that affects one running builder, if there is one. */
function toBuilder(what: (context: FaultContext, builder: BuilderProcess) => void): InjectedFault {
  return (context) => {
    const builder = oneOf(
      context.random,
      context.world.builders.filter(({ process }) => !process.dead),
    );
    if (builder !== undefined) what(context, builder);
  };
}

const killBuilder = toBuilder(({ world, random }, builder) => {
  const steps = between(random, 1, 30);
  world.checker.step(`${builder.name} will be killed ${steps} steps from now`);
  builder.killAfter(steps);
});

const expireBuilder = toBuilder(({ world }, builder) => {
  world.checker.step(`the session of ${builder.name} expires`);
  world.server.expireSession(builder.zooKeeper);
});

const loseBuildersWrite = toBuilder(({ world, random }, builder) => {
  const when = random.next() < 0.3 ? 'before-applied' : 'after-applied';
  world.checker.step(`the next write of ${builder.name} gets lost (${when})`);
  world.server.loseNextWrite(builder.zooKeeper, when);
});

export const IMAGE_FAULTS: readonly WeightedFault[] = [
  [2, kill],
  [6, killBetweenSteps],
  [1, stop],
  [1, pause],
  [2, expire],
  [2, partition],
  [1, disconnect],
  [3, loseWrite],
  [1, lag],
  [6, killBuilder],
  [2, expireBuilder],
  [2, loseBuildersWrite],
];
