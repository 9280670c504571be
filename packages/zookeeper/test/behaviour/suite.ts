/** The behaviour of every ZooKeeper server, real or simulated: one section per file. */

import { describe } from '@jest/globals';
import { describeAccess, describeAccessOfOurs } from './access.js';
import { describeCreationInTransactions, describeCreationModes } from './creation.js';
import {
  Bench,
  PlainBench,
  type Inabilities,
  type PlainFactory,
  type PlainZooKeeper,
  type ZooKeeperFactory,
} from './harness.js';
import { describeInquiries } from './inquiries.js';
import { describeLocks } from './locks.js';
import { describeBadPaths, describeMissing, describeNames } from './names.js';
import { describeEventOrder, describeOrdering } from './ordering.js';
import { describeSessions } from './sessions.js';
import { describeTransactions } from './transactions.js';
import { describeTrees } from './trees.js';
import { describeVersions, describeVersionsInTransactions } from './versions.js';
import { describeMissedEvents, describeOneShotMatrix, describePersistentMatrix } from './watch-matrix.js';
import { describeWatches } from './watches.js';
import { describeZnodes } from './znodes.js';

/** The sections for any client, this one or the reference. */
function describePlain(bench: PlainBench, unable?: Inabilities): void {
  describeCreationModes(bench);
  describeNames(bench);
  describeMissing(bench, unable);
  describeVersions(bench);
  describeAccess(bench, unable);
  describeOneShotMatrix(bench);
  describeOrdering(bench);
}

/** All sections for this client, and `describeMore`, the tests of one type of server. */
export function describeZooKeeper(
  name: string,
  factory: ZooKeeperFactory,
  describeMore?: (bench: Bench) => void,
): void {
  describe(name, () => {
    const bench = new Bench(factory);
    describePlain(bench);
    describeZnodes(bench);
    describeCreationInTransactions(bench);
    describeBadPaths(bench);
    describeVersionsInTransactions(bench);
    describeAccessOfOurs(bench);
    describeSessions(bench);
    describeTransactions(bench);
    describeWatches(bench);
    describePersistentMatrix(bench);
    describeMissedEvents(bench);
    describeEventOrder(bench);
    describeInquiries(bench);
    describeLocks(bench);
    describeTrees(bench);
    describeMore?.(bench);
  });
}

/** The sections for the reference client, which shows if a behaviour is the server's or this client's. */
export function describeReference(name: string, factory: PlainFactory<PlainZooKeeper>, unable: Inabilities): void {
  describe(name, () => describePlain(new PlainBench(factory), unable));
}
