/** The simulated server behaves as a real one. */
import { seeded } from './seeded.js';
import { SimulatedFactory } from './simulated-factory.js';
import { describeZooKeeper } from './suite.js';

describeZooKeeper('the simulated ZooKeeper', new SimulatedFactory());

const random = seeded(1);
describeZooKeeper(
  'the simulated ZooKeeper with a latency that varies',
  new SimulatedFactory({ latencyMs: () => Math.floor(random() * 20) }),
);
