/** A real server behaves as the simulated one. */
import { RealFactory } from './real-factory.js';
import { describeZooKeeper } from './suite.js';

describeZooKeeper('a real ZooKeeper', new RealFactory());
