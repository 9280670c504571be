/** Faults of runs with backing nodes. */

import { oneOf } from '../chance.js';
import { backingOf } from '../rules/slots.js';
import { destroyInstance } from './clouds.js';
import type { InjectedFault, WeightedFault } from './fault-context.js';
import { disconnect, expire, kill, killBetweenSteps, lag, loseWrite, partition, pause, stop } from './launchers.js';

/** Removes the lock of a backing node, as an operator does who deletes the node by hand. */
const unlock: InjectedFault = ({ world, random }) => {
  const { checker, server } = world;
  const node = oneOf(
    random,
    [...checker.observed.nodes.values()].filter((each) => backingOf(each) !== undefined),
  );
  if (node?.contender === undefined) return;
  checker.step(`an operator deletes the lock of backing node ${node.id}`);
  const client = server.connect();
  client
    .delete(node.contender)
    .catch((error: unknown) => checker.step(`the lock was not deleted: ${String(error)}`))
    .finally(() => void client.close());
};

export const SLOT_FAULTS: readonly WeightedFault[] = [
  [4, kill],
  [6, killBetweenSteps],
  [2, stop],
  [2, pause],
  [3, expire],
  [3, partition],
  [2, disconnect],
  [4, loseWrite],
  [2, lag],
  [2, destroyInstance],
  [1, unlock],
];
