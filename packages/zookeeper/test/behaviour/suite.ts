/** What every ZooKeeper does, real or simulated: one section per file. */

import { describe } from '@jest/globals';
import { Bench, type ZooKeeperFactory } from './harness.js';
import { describeLocks } from './locks.js';
import { describeSessions } from './sessions.js';
import { describeTransactions } from './transactions.js';
import { describeTrees } from './trees.js';
import { describeWatches } from './watches.js';
import { describeZnodes } from './znodes.js';

export function describeZooKeeper(name: string, factory: ZooKeeperFactory): void {
  describe(name, () => {
    const bench = new Bench(factory);
    describeZnodes(bench);
    describeSessions(bench);
    describeTransactions(bench);
    describeWatches(bench);
    describeLocks(bench);
    describeTrees(bench);
  });
}
