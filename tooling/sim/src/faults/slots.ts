/** Faults of runs with backing nodes. */

import type { JsonObject } from '@nodepool/core';
import { announcing } from '../announcing.js';
import { oneOf } from '../chance.js';
import { backingOf, BACKING_OWNER } from '../rules/slots.js';
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

/** Texts that are not the data of a backing node, but look like it. */
const DAMAGED: readonly (string | null)[] = [
  null,
  '',
  '{"owner": "NodePool:metastatic:meta", "label"',
  '{"owner": "NodePool:metastatic:other", "label": "slot", "slots": 4, "failed": false, "used": {}}',
  `{"owner": "${BACKING_OWNER}", "label": "slot", "slots": "4", "failed": false, "used": {}}`,
  `{"owner": "${BACKING_OWNER}", "label": "slot", "slots": 4, "failed": false, "used": {"0": 7}}`,
];

/** Damages the data of a backing node, in the version that is read. */
const damage: InjectedFault = ({ world, random }) => {
  const { checker } = world;
  const backing = [...checker.observed.nodes.values()].filter((each) => backingOf(each) !== undefined);
  const node = oneOf(random, backing);
  const text = oneOf(random, DAMAGED) ?? null;
  if (node === undefined) return;
  checker.step(`another program damages the data of backing node ${node.id}: ${String(text)}`);
  const zooKeeper = announcing(world);
  const write = async (): Promise<void> => {
    const path = `/nodepool/nodes/${node.id}`;
    const { data, stat } = await zooKeeper.get(path);
    const record = JSON.parse(new TextDecoder().decode(data)) as JsonObject;
    const damaged = new TextEncoder().encode(JSON.stringify({ ...record, user_data: text }));
    await zooKeeper.set(path, damaged, { version: stat.version });
  };
  write()
    .catch((error: unknown) => checker.step(`the data was not damaged: ${String(error)}`))
    .then(() => zooKeeper.close())
    .catch((error: unknown) => checker.step(`the damaging program does not close: ${String(error)}`));
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
  [1, damage],
];
