/** A real server behaves as the simulation says. */
import { jest } from '@jest/globals';
import { RealFactory } from './real-factory.js';
import { describeZooKeeper } from './suite.js';

jest.setTimeout(60_000);

describeZooKeeper('a real ZooKeeper', new RealFactory());
