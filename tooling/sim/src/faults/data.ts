/** Faults of ZooKeeper and its data, and foreign resources in the cloud. */

import { announcing } from '../announcing.js';
import { between, oneOf } from '../chance.js';
import type { InjectedFault, WeightedFault } from './fault-context.js';

const outage: InjectedFault = ({ world, random }) => {
  world.checker.step('ZooKeeper goes down');
  world.server.stop();
  // Also scheduled if the faults end earlier, so that the server always comes back.
  world.clock.schedule(between(random, 0, 30_000), () => {
    world.checker.step('ZooKeeper is up');
    world.server.start();
  });
};

/** Takes a backup and restores it a while later. */
const restore: InjectedFault = (context) => {
  const { world } = context;
  const takenAt = world.clock.monotonic();
  const backup = world.server.snapshot();
  context.later(500, 20_000, () => {
    world.checker.step(`ZooKeeper is restored to its state of ${world.clock.monotonic() - takenAt} ms ago`);
    world.server.restore(backup);
    world.restored(takenAt);
  });
};

/** Exchanges the ensemble for an empty one, as a configuration with the wrong servers does. */
const exchange: InjectedFault = ({ world }) => {
  world.checker.step('ZooKeeper is exchanged for an empty ensemble');
  world.server.restore(world.empty);
  world.restored(0);
};

/** Invalid records that no Nodepool program would write. */
const INVALID_RECORDS: readonly string[] = [
  '',
  '{"state": "ready", "provi',
  'null',
  '[]',
  '"used"',
  '{"invalid": true}',
  '{"invalid": true, "state": 5, "type": {}, "allocated_to": []}',
  '{"invalid": true, "state": "abandoned", "provider": "alpha", "pool": "main", "type": ["small"]}',
  '{"invalid": true, "state": "requested", "node_types": "small", "declined_by": 7}',
  '\u0000\ufffd{',
  `{"invalid": true, "comment": "${'x'.repeat(200_000)}"}`,
];

const corruptRecord: InjectedFault = (context) => {
  const { world, random } = context;
  const content = oneOf(random, INVALID_RECORDS) ?? '';
  const path = random.next() < 0.5 ? '/nodepool/nodes/' : '/nodepool/requests/200-';
  world.checker.step(`an invalid record is written to ${path}: ${content.slice(0, 80)}`);
  const zooKeeper = announcing(world);
  zooKeeper
    .create(path, new TextEncoder().encode(content), { mode: 'persistent-sequential' })
    .catch((error: unknown) => world.checker.step(`the invalid record was rejected: ${String(error)}`))
    .then(() => zooKeeper.close())
    .catch((error: unknown) => world.checker.step(`the writer of the invalid record does not close: ${String(error)}`));
};

const foreignInstance: InjectedFault = ({ world }) => world.startForeignInstance();

export const DATA_FAULTS: readonly WeightedFault[] = [
  [2, outage],
  [1, restore],
  [0.3, exchange],
  [2, corruptRecord],
  [2, foreignInstance],
];
